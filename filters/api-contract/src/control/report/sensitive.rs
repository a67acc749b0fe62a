//! Names of fields that hold something sensitive.

/// Words that say it by themselves, wherever a name has them.
const WORDS: &[&str] = &[
    "address",
    "apikey",
    "authorization",
    "bearer",
    "bic",
    "birth",
    "birthdate",
    "birthday",
    "card",
    "cookie",
    "credential",
    "credentials",
    "credit",
    "csrf",
    "cvc",
    "cvv",
    "dob",
    "email",
    "emails",
    "fingerprint",
    "iban",
    "ip",
    "jwt",
    "latitude",
    "longitude",
    "mail",
    "mfa",
    "mobile",
    "msisdn",
    "nino",
    "otp",
    "pan",
    "passcode",
    "passphrase",
    "passport",
    "passwd",
    "password",
    "passwords",
    "phone",
    "phones",
    "pin",
    "pwd",
    "salary",
    "secret",
    "secrets",
    "session",
    "sid",
    "sin",
    "ssn",
    "swift",
    "tfn",
    "tin",
    "token",
    "tokens",
    "totp",
];
/// Parts that say it also where a name is written in one: `cardnumber`, `accesstoken`.
const PARTS: &[&str] = &[
    "accesskey",
    "accesstoken",
    "accountnumber",
    "apikey",
    "apisecret",
    "apitoken",
    "authtoken",
    "bankaccount",
    "cardno",
    "cardnumber",
    "clientsecret",
    "creditcard",
    "dateofbirth",
    "debitcard",
    "driverlicense",
    "driverslicense",
    "emailaddress",
    "encryptionkey",
    "idnumber",
    "ipaddress",
    "mothersmaiden",
    "nationalid",
    "passphrase",
    "passport",
    "password",
    "phonenumber",
    "privatekey",
    "refreshtoken",
    "routingnumber",
    "secretkey",
    "securitycode",
    "sessionid",
    "sharedsecret",
    "signingkey",
    "socialsecurity",
    "sortcode",
    "taxid",
    "taxnumber",
];

/// Whether the name of a field is of a sensitive kind: `password`, `card_number`, `apiKey`, `refreshToken`. Names that only contain
/// such a word by chance (`cardinality`, `tokenize`) are not.
pub(super) fn is_sensitive(name: &str) -> bool {
    let mut words: Vec<String> = Vec::new();
    let mut lower = false;
    let mut begins = true;
    for character in name.chars() {
        if !character.is_ascii_alphabetic() {
            begins = true;
            continue;
        }
        // `apiKey` is two words, `APIKEY` one.
        if begins || (lower && character.is_ascii_uppercase()) {
            words.push(String::new());
        }
        (begins, lower) = (false, character.is_ascii_lowercase());
        if let Some(word) = words.last_mut() {
            word.push(character.to_ascii_lowercase());
        }
    }
    let joined = words.concat();
    words.iter().any(|word| WORDS.contains(&word.as_str())) || PARTS.iter().any(|part| joined.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_by_their_words() {
        for name in [
            "password",
            "user_password",
            "ssn",
            "card_number",
            "cardNumber",
            "cardnumber",
            "apiKey",
            "API_KEY",
            "x-api-key",
            "refreshToken",
            "access_token",
            "email",
            "userEmail",
            "dateOfBirth",
            "iban",
            "cvv2",
            "client-secret",
            "taxId",
            "ip_address",
            "PIN",
        ] {
            assert!(is_sensitive(name), "{name}");
        }
        for name in [
            "cardinality",
            "tokenize",
            "id",
            "name",
            "pinned",
            "spinach",
            "company",
            "zip",
            "description",
            "secretary",
            "",
        ] {
            assert!(!is_sensitive(name), "{name}");
        }
    }
}
