//! The editors: where each keeps its agents, and in which form.
//!
//! Sources: zed.dev/docs/ai/external-agents and Zed's crates/paths (Zed),
//! jetbrains.com/help/ai-assistant/acp.html (JetBrains), the extension formulahendry.acp-client
//! (VS Code), codecompanion.olimorris.dev/configuration/adapters-acp (Neovim) and
//! github.com/xenodium/agent-shell (Emacs).

use std::env;
use std::path::PathBuf;

use clap::ValueEnum;
use jsonc_parser::cst::CstInputValue;
use serde_json::json;

/// An editor that starts its agents as commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Editor {
    /// Zed: settings.json
    Zed,
    /// The IDEs of JetBrains: ~/.jetbrains/acp.json
    Jetbrains,
    /// VS Code with the extension ACP Client: settings.json
    #[value(alias = "code")]
    Vscode,
    /// Neovim with CodeCompanion: lines to paste
    #[value(alias = "nvim")]
    Neovim,
    /// Emacs with agent-shell: lines to paste
    Emacs,
}

/// What an editor starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Entry {
    /// The name that the editor shows.
    pub(in crate::cli) name: String,
    /// The absolute path of this program.
    pub(in crate::cli) program: String,
    pub(in crate::cli) args: Vec<String>,
}

impl Entry {
    /// What names the agent to `connect`, or `--` before its command; `None` if the arguments have
    /// another form than `install` gives them.
    pub(in crate::cli) fn agent(&self) -> Option<&str> {
        let (connect, mut rest) = self.args.split_first()?;
        while let [option, _, more @ ..] = rest
            && ["--files", "--map"].contains(&option.as_str())
        {
            rest = more;
        }
        match rest {
            _ if connect != "connect" => None,
            [agent] if !agent.starts_with('-') => Some(agent),
            [dashes, ..] if dashes == "--" => Some(dashes),
            _ => None,
        }
    }
}

impl Editor {
    /// The member of its settings that holds the agents; `None` for an editor that is configured
    /// by a program.
    pub(super) const fn member(self) -> Option<&'static str> {
        match self {
            Self::Zed | Self::Jetbrains => Some("agent_servers"),
            Self::Vscode => Some("acp.agents"),
            Self::Neovim | Self::Emacs => None,
        }
    }

    /// The file with its agents.
    ///
    /// # Errors
    /// There is no home directory.
    pub(super) fn path(self) -> Result<PathBuf, String> {
        // A relative path is to be ignored, says the XDG Base Directory Specification.
        let variable = |name| {
            let path = env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let fault = "HOME is not an absolute path; it is where editors keep their settings";
        let home = variable("HOME").ok_or(fault)?;
        let config = || variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let is_mac = cfg!(target_os = "macos");
        Ok(match self {
            Self::Zed if is_mac => home.join(".config/zed/settings.json"),
            Self::Zed => config().join("zed/settings.json"),
            Self::Jetbrains => home.join(".jetbrains/acp.json"),
            Self::Vscode if is_mac => {
                home.join("Library/Application Support/Code/User/settings.json")
            }
            Self::Vscode => config().join("Code/User/settings.json"),
            Self::Neovim => config().join("nvim/init.lua"),
            Self::Emacs => home.join(".emacs.d/init.el"),
        })
    }

    /// How the editor is called in messages.
    pub(in crate::cli) const fn title(self) -> &'static str {
        match self {
            Self::Zed => "Zed",
            Self::Jetbrains => "JetBrains",
            Self::Vscode => "VS Code",
            Self::Neovim => "Neovim",
            Self::Emacs => "Emacs",
        }
    }

    /// What to do in the editor once the entry is there.
    pub(super) fn next_step(self, name: &str) -> String {
        match self {
            Self::Zed => format!("In Zed's agent panel, start a new thread with \"{name}\"."),
            Self::Jetbrains => format!("In the AI chat of the IDE, choose \"{name}\"."),
            Self::Vscode => format!("In the panel of the extension ACP Client, choose \"{name}\"."),
            Self::Neovim => {
                "These lines belong into init.lua; if it calls codecompanion's setup already, add \
                 the adapter to that call."
                    .to_owned()
            }
            Self::Emacs => {
                "These lines belong into init.el; then `M-x agent-shell` offers the agent."
                    .to_owned()
            }
        }
    }

    /// The members of the entry in the editor's settings.
    pub(super) fn members(self, entry: &Entry) -> Vec<(String, CstInputValue)> {
        let mut members = vec![
            ("command".to_owned(), entry.program.clone().into()),
            ("args".to_owned(), entry.args.clone().into()),
        ];
        if self == Self::Zed {
            members.insert(0, ("type".to_owned(), "custom".into()));
        }
        members
    }

    /// The lines for an editor that is configured by a program.
    pub(super) fn lines(self, entry: &Entry) -> String {
        let name = quoted(&entry.name);
        let program = quoted(&entry.program);
        let args: Vec<String> = entry.args.iter().map(|arg| quoted(arg)).collect();
        match self {
            Self::Emacs => format!(
                "(with-eval-after-load 'agent-shell\n  \
                   (add-to-list 'agent-shell-agent-configs\n    \
                     (agent-shell-make-agent-config\n     \
                       :identifier '{id}\n     \
                       :mode-line-name {name}\n     \
                       :buffer-name {name}\n     \
                       :shell-prompt {prompt}\n     \
                       :shell-prompt-regexp (regexp-quote {prompt})\n     \
                       :client-maker\n     \
                       (lambda (buffer)\n       \
                         (acp-make-client\n        \
                           :command {program}\n        \
                           :command-params '({args})\n        \
                           :context-buffer buffer)))))\n",
                id = identifier(&entry.name, '-'),
                prompt = quoted(&format!("{}> ", entry.name)),
                args = args.join(" "),
            ),
            _ => format!(
                "require(\"codecompanion\").setup({{ adapters = {{ acp = {{ {id} = function()\n  \
                   return require(\"codecompanion.adapters\").extend(\"goose\", {{\n    \
                     name = \"{id}\", formatted_name = {name},\n    \
                     commands = {{ default = {{ {program}, {args} }} }},\n  \
                   }})\nend }} }} }})\n",
                id = identifier(&entry.name, '_'),
                args = args.join(", "),
            ),
        }
    }
}

/// A string of Lua and Emacs Lisp. They agree with JSON for texts without control characters
/// besides line breaks and tabs.
fn quoted(text: &str) -> String {
    json!(text).to_string()
}

/// The name as a symbol of Lua or Lisp, other than those of the plugin's own agents.
fn identifier(name: &str, joint: char) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { joint };
    "relay"
        .chars()
        .chain([joint])
        .chain(name.chars().map(plain))
        .collect()
}
