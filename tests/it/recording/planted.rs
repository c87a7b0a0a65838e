//! Secrets of many shapes, planted in texts that are recorded, logged and exported.

/// The rules, each with an example in which `K3Y` stands for a key.
pub(super) const RULES: &str = include_str!("../../../src/recording/redact/rules.txt");

/// More shapes than the rules have examples of.
const SHAPES: [&str; 10] = [
    "sk-ant-api03-K3Y",
    "sk-proj-K3Y",
    "token: K3Y",
    "password = K3Y",
    "https://user:K3Y@example.com/x",
    "https://example.com/?access_token=K3Y&x=1",
    "密钥：sk-K3Y",
    "‘Bearer K3Y’",
    "Bearer\tK3Y",
    "GPG_PASSPHRASE=K3Y",
];

/// Makes secrets, and keeps them all.
#[derive(Default)]
pub(super) struct PlantedSecrets(pub(super) Vec<String>);

impl PlantedSecrets {
    /// Forty letters and digits that look random and are the same each time.
    pub(super) fn plant(&mut self) -> String {
        let mut state = (self.0.len() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let letters = (0..37).map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let alphabet = b"abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ23456789";
            char::from(alphabet[(state >> 20) as usize % alphabet.len()])
        });
        let secret: String = "Q7x".chars().chain(letters).collect();
        self.0.push(secret.clone());
        secret
    }

    /// A secret of each shape: of every general rule, and of some makers.
    pub(super) fn shaped(&mut self) -> Vec<String> {
        let rows = RULES.lines().filter(|row| !row.starts_with('#'));
        let some = rows.enumerate().filter_map(|(at, row)| {
            let columns: Vec<&str> = row.split(" | ").collect();
            let chosen = columns[1].contains(": ") || at % 6 == 0;
            // Places need JSON, and the lines of a PuTTY key a whole text.
            let plain = !columns[2].starts_with('{') && columns[0] != "putty-key";
            (chosen && plain).then_some(columns[2])
        });
        let all = some.chain(SHAPES).filter(|shape| shape.contains("K3Y"));
        all.map(|shape| {
            let mut text = shape.replace("\\n", "\n");
            while text.contains("K3Y") {
                text = text.replacen("K3Y", &self.plant(), 1);
            }
            text
        })
        .collect()
    }

    /// Asserts that the output of `what` contains none of them.
    pub(super) fn assert_absent(&self, what: &str, output: &[u8]) {
        let text = String::from_utf8_lossy(output);
        for secret in &self.0 {
            if let Some(at) = text.find(&secret[..12]) {
                let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
                let line: String = text[line..].chars().take(600).collect();
                panic!("{secret} in {what}: {line}");
            }
        }
    }
}
