//! `@verifyCC`, `@verifyCPF`, `@verifySSN`, `@verifySVNR`: a pattern finds candidates, a checksum confirms one.

/// How many candidates of one value are looked at.
pub(super) const MAX_CANDIDATES: usize = 1000;

/// The digits of a candidate, at most `N` of them; `None` if there are more.
fn digits<const N: usize>(candidate: &[u8]) -> Option<([u32; N], usize)> {
    let mut found = [0; N];
    let mut count = 0;
    for digit in candidate.iter().filter(|byte| byte.is_ascii_digit()) {
        *found.get_mut(count)? = u32::from(digit - b'0');
        count += 1;
    }
    Some((found, count))
}

fn exactly<const N: usize>(candidate: &[u8]) -> Option<[u32; N]> {
    digits::<N>(candidate).filter(|&(_, count)| count == N).map(|(found, _)| found)
}

/// Payment cards: the Luhn checksum (ISO/IEC 7812-1, annex B).
pub(super) fn is_card(candidate: &[u8]) -> bool {
    let mut sum = 0;
    let mut count = 0;
    for digit in candidate.iter().rev().filter(|byte| byte.is_ascii_digit()) {
        let digit = u32::from(digit - b'0');
        let doubled = digit * 2;
        sum += match count % 2 {
            0 => digit,
            _ if doubled > 9 => doubled - 9,
            _ => doubled,
        };
        count += 1;
    }
    count > 0 && sum % 10 == 0
}

/// Brazilian taxpayers: eleven digits, of which the last two are check digits modulo 11.
pub(super) fn is_cpf(candidate: &[u8]) -> bool {
    let Some(number) = exactly::<11>(candidate) else {
        return false;
    };
    let Some((first, rest)) = number.split_first() else {
        return false;
    };
    if rest.iter().all(|digit| digit == first) {
        return false;
    }
    [9, 10].into_iter().all(|length: usize| {
        let sum: u32 = number.iter().zip((2..=length as u32 + 1).rev()).map(|(digit, weight)| digit * weight).sum();
        let check = match sum % 11 {
            0 | 1 => 0,
            remainder => 11 - remainder,
        };
        number.get(length) == Some(&check)
    })
}

/// US social security numbers: no area, group or serial of zeros, no area 666 or from 740 on, not all the same digit
/// and not a run of successive digits.
pub(super) fn is_ssn(candidate: &[u8]) -> bool {
    let Some(number) = exactly::<9>(candidate) else {
        return false;
    };
    let value = |range: std::ops::Range<usize>| {
        number.get(range).unwrap_or_default().iter().fold(0, |value, digit| value * 10 + digit)
    };
    let (area, group, serial) = (value(0..3), value(3..5), value(5..9));
    let steps =
        |step: i64| number.windows(2).all(|pair| matches!(*pair, [a, b] if i64::from(b) - i64::from(a) == step));
    area != 0 && area != 666 && area < 740 && group != 0 && serial != 0 && !steps(0) && !steps(1)
}

/// Austrian social security numbers: ten digits, of which the fourth is a check digit modulo 11.
pub(super) fn is_svnr(candidate: &[u8]) -> bool {
    const WEIGHTS: [u32; 10] = [3, 7, 9, 0, 5, 8, 4, 2, 1, 6];
    let Some(number) = exactly::<10>(candidate) else {
        return false;
    };
    if number.iter().all(|digit| Some(digit) == number.first()) {
        return false;
    }
    let sum: u32 = number.iter().zip(WEIGHTS).map(|(digit, weight)| digit * weight).sum();
    number.get(3) == Some(&(sum % 11))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_confirm_numbers() {
        for valid in ["4111 1111 1111 1111", "5500-0000-0000-0004", "340000000000009"] {
            assert!(is_card(valid.as_bytes()), "{valid}");
        }
        for invalid in ["4111 1111 1111 1112", "", "x"] {
            assert!(!is_card(invalid.as_bytes()), "{invalid}");
        }
        for valid in ["529.982.247-25", "52998224725", "11144477735"] {
            assert!(is_cpf(valid.as_bytes()), "{valid}");
        }
        for invalid in ["529.982.247-26", "11111111111", "5299822472", "529982247255"] {
            assert!(!is_cpf(invalid.as_bytes()), "{invalid}");
        }
        for valid in ["078-05-1120", "219-09-9999"] {
            assert!(is_ssn(valid.as_bytes()), "{valid}");
        }
        for invalid in
            ["000-12-3456", "666-12-3456", "123-00-4567", "123-45-0000", "111-11-1111", "123456789", "740-12-3456"]
        {
            assert!(!is_ssn(invalid.as_bytes()), "{invalid}");
        }
        assert!(is_svnr(b"1237 010180"));
        assert!(!is_svnr(b"1238 010180"));
        assert!(!is_svnr(b"1111111111"));
    }
}
