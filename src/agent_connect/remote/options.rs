//! Session options: each member of an agent's configuration that has an enumeration of values is an
//! option, and is sent with each run once the client has set it.
//!
//! Configuration of other types is given in the client's `_meta`.

use serde_json::{Map, Value, json};

use super::descriptor::Descriptor;
use crate::agent_connect::api::content::plain_text;

impl Descriptor {
    /// The options of a session in which these values were set. An option that was not set shows
    /// its schema's default, or its first value.
    pub(super) fn options(&self, chosen: &Map<String, Value>) -> Vec<Value> {
        let option = |(id, schema): (&String, &Value)| {
            let values = values(schema)?;
            let now = chosen.get(id).or_else(|| schema.get("default"));
            let now = now
                .filter(|now| values.contains(now))
                .or_else(|| values.first())?;
            let text = |name: &str| schema[name].as_str();
            let shown = |value| json!({ "value": plain_text(value), "name": plain_text(value) });
            let mut option = json!({
                "id": id,
                "name": text("title").unwrap_or(id),
                "type": "select",
                "currentValue": plain_text(now),
                "options": values.iter().map(shown).collect::<Vec<_>>(),
            });
            if let Some(about) = text("description") {
                option["description"] = json!(about);
            }
            if ["mode", "model"].contains(&id.as_str()) {
                option["category"] = json!(id);
            }
            Some(option)
        };
        self.config()
            .into_iter()
            .flatten()
            .filter_map(option)
            .collect()
    }

    /// The value sent to the agent for an option that a client sets to `value`; `None` when there
    /// is no such option or value.
    pub(super) fn choice(&self, id: &str, value: &Value) -> Option<Value> {
        let wanted = value.as_str()?;
        let values = values(self.config()?.get(id)?)?;
        values.into_iter().find(|value| plain_text(value) == wanted)
    }

    fn config(&self) -> Option<&Map<String, Value>> {
        self.spec("/config/properties")?.as_object()
    }
}

/// The values of a member, if it has an enumeration of strings or numbers.
fn values(schema: &Value) -> Option<Vec<Value>> {
    let all = schema.get("enum")?.as_array()?;
    let simple = |value: &&Value| value.is_string() || value.is_number();
    let values: Vec<Value> = all.iter().filter(simple).cloned().collect();
    (!values.is_empty()).then_some(values)
}
