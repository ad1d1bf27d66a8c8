//! What a record says is applied, read back and checked: it may have been written by anybody.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::question::correction::Form;

/// Largest size of a bias.
const BIAS_MAX: f64 = 1_000.0;

/// Temperatures of heads.
const TEMPERATURES: std::ops::RangeInclusive<f64> = 0.01..=100.0;

/// An array of a head.
pub(super) fn array(values: &[f32], shape: &[usize]) -> Value {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    json!({"dtype": "float32", "shape": shape, "b64": BASE64.encode(bytes)})
}

/// The values of an array of `columns` columns, or of that many values where it has one dimension.
fn values(array: &Value, (columns, dimensions): (usize, usize)) -> Result<Vec<f32>, String> {
    let text = array["b64"].as_str().ok_or("an array of the head is not there: ask with full=1")?;
    let bytes = BASE64.decode(text).map_err(|error| format!("an array is no base64: {error}"))?;
    let (fours, rest) = bytes.as_chunks::<4>();
    let rows = fours.len() / columns.max(1);
    let shape = if dimensions == 1 { json!([columns]) } else { json!([rows, columns]) };
    let is_full = rest.is_empty() && rows > 0 && rows * columns == fours.len();
    if !is_full || array["shape"] != shape || dimensions == 1 && rows != 1 {
        return Err(format!("an array of {} bytes does not have its shape", bytes.len()));
    }
    let values: Vec<f32> = fours.iter().map(|four| f32::from_le_bytes(*four)).collect();
    if values.iter().all(|value| value.is_finite()) {
        return Ok(values);
    }
    Err("an array has a value that is not finite".to_owned())
}

/// The head of a record, if one is applied.
pub(super) fn head_of(head: &Value, options: usize) -> Result<Option<Form>, String> {
    if !head.is_null() && !head.is_object() {
        return Err("head is neither null nor an object".to_owned());
    }
    if head["applied"] != true {
        return Ok(None);
    }
    let temperature = head["T"].as_f64().filter(|t| TEMPERATURES.contains(t));
    let temperature = temperature.ok_or_else(|| format!("T is not within {TEMPERATURES:?}"))?;
    let offsets = values(&head["c"], (options, 1))?;
    Ok(Some(Form::Head { weights: values(&head["A"], (options, 2))?, offsets, temperature }))
}

/// The bias of a record, if one is applied.
pub(super) fn bias_of(
    calibration: &Value,
    options: usize,
    is_noul: bool,
) -> Result<Option<Form>, String> {
    if !calibration.is_object() {
        return Err("calibration is no object".to_owned());
    }
    if calibration["applied"] != true {
        return Ok(None);
    }
    let list = calibration["bias"].as_array().ok_or("bias is no list")?;
    let sound = |value: &Value| value.as_f64().filter(|bias| bias.abs() <= BIAS_MAX);
    let bias: Option<Vec<f64>> = list.iter().map(sound).collect();
    let Some(mut bias) = bias.filter(|bias| bias.len() == options) else {
        return Err(format!("bias is no list of {options} numbers up to {BIAS_MAX}"));
    };
    if is_noul {
        bias.reverse();
    }
    Ok(Some(Form::Bias(bias)))
}

/// From which probability on answers are certified, or why none is, where that was asked for.
pub(super) fn certificate_of(certificate: &Value) -> Result<Option<Result<f64, String>>, String> {
    if certificate.is_null() {
        return Ok(None);
    }
    if !certificate.is_object() {
        return Err("certificate is neither null nor an object".to_owned());
    }
    match certificate["threshold"].as_f64() {
        Some(threshold) if (0.0..=1.0).contains(&threshold) => Ok(Some(Ok(threshold))),
        Some(threshold) => Err(format!("the threshold {threshold} is not within 0 and 1")),
        None => {
            let reason = certificate["reason"].as_str().unwrap_or("no threshold holds");
            Ok(Some(Err(reason.to_owned())))
        }
    }
}
