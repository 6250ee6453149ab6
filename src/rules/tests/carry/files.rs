//! The two files as they are read: whole, of a known format, of one piece, or refused for what they are.

use super::*;
use crate::model::id::{Id, JobId};
use crate::rules::carry::unsealed;
use crate::rules::fingerprint::Question;

#[test]
fn a_file_that_is_cut_edited_newer_or_the_other_one_is_refused_for_what_it_is() {
    let (_, _, file) = exported(JOB);
    let export = read(&file);
    let result = judged(&export, "accept");
    let kinds = |text: &str| {
        let as_export = unsealed::<Export>(text.as_bytes()).err().map(|error| error.kind);
        (as_export, unsealed::<Returned>(text.as_bytes()).err().map(|error| error.kind))
    };
    assert_eq!(kinds(&file), (None, Some(Kind::Usage)));
    assert_eq!(kinds(&result), (Some(Kind::Usage), None));
    let bad = (Some(Kind::BadInput), Some(Kind::BadInput));
    for at in [0, 1, result.len() / 2, result.len() - 3] {
        assert_eq!(kinds(&result[..at]), bad, "cut at {at}");
    }
    assert_eq!(kinds(&result.replace("accept", "reject")).1, Some(Kind::BadInput));
    assert_eq!(kinds(&file.replace("jane", "joan")).0, Some(Kind::BadInput));
    assert_eq!(kinds(&file.replace("\"nf_export\": 1", "\"nf_export\": 2")).0, Some(Kind::NewerFormat));
    assert_eq!(kinds(&result.replace("\"nf_result\": 1", "\"nf_result\": 9")).1, Some(Kind::NewerFormat));
    let double = result.replacen('{', "{\"nf\": \"0\", ", 1);
    assert_eq!(kinds(&double).1, Some(Kind::BadInput), "a key that stands twice");
    for text in ["", "[]", "{}", "null", "\"nf_result\""] {
        assert_eq!(kinds(text), bad, "{text}");
    }
    // One that seals what it made up is whole, and still no more than its parts bear out.
    let resealed = |change: &dyn Fn(&mut Export)| {
        let mut forged = export.clone();
        change(&mut forged);
        Export::read(sealed(&forged).0.as_bytes()).err().map(|error| error.kind)
    };
    assert_eq!(resealed(&|_| {}), None);
    assert_eq!(resealed(&|forged| forged.job.question.kind.push('x')), Some(Kind::BadInput));
    assert_eq!(resealed(&|forged| forged.job.id = None), Some(Kind::BadInput));
    // Work that is no question has no digest; a question does not become such work by losing its own.
    let stripped = |forged: &mut Export| {
        (forged.job.id, forged.job.fingerprint, forged.job.job_digest) = (None, None, None);
    };
    assert_eq!(resealed(&stripped), Some(Kind::BadInput));
    // Also where its job is given a digest of its own: a schema that leads elsewhere is never compiled.
    let reframed = |change: &dyn Fn(&mut Question)| {
        resealed(&|forged| {
            change(&mut forged.job.question);
            let (fingerprint, digest) = forged.job.digest_again();
            let hash: Hash = digest.rsplit(':').next().unwrap().parse().unwrap();
            forged.job.id = Some(JobId::from_bytes(hash.bytes()));
            (forged.job.fingerprint, forged.job.job_digest) = (Some(fingerprint), Some(digest));
        })
    };
    assert_eq!(reframed(&|question| question.kind.push('x')), None);
    for output in [json!({"$ref": "https://example.org/schema"}), json!({"pattern": "("}), json!(7)] {
        assert_eq!(reframed(&|question| question.output = output.clone()), Some(Kind::BadInput), "{output}");
    }
    assert_eq!(reframed(&|question| question.verdict = Some(json!({"pointer": 7}))), Some(Kind::BadInput));
    assert_eq!(resealed(&|forged| forged.job.id = "j-000000000000".parse().ok()), Some(Kind::BadInput));
    assert_eq!(resealed(&|forged| forged.artifacts[0].content.push('x')), Some(Kind::BadInput));
    assert_eq!(resealed(&|forged| forged.artifacts[0].encoding.push('x')), Some(Kind::BadInput));
    assert_eq!(resealed(&|forged| forged.artifacts.clear()), Some(Kind::BadInput));
    assert_eq!(resealed(&|forged| forged.packet.clear()), Some(Kind::BadInput));
    assert_eq!(resealed(&|forged| forged.nf = "x".repeat(65)), Some(Kind::BadInput));
}

#[test]
fn no_flipped_bit_of_a_result_file_makes_another_answer() {
    let (_, _, file) = exported(JOB);
    let result = judged(&read(&file), "accept");
    let whole = Returned::read(result.as_bytes()).unwrap();
    for at in 0..result.len() * 8 {
        let mut bytes = result.clone().into_bytes();
        bytes[at / 8] ^= 1 << (at % 8);
        // What is read all the same differs by white space.
        if let Ok(read) = Returned::read(&bytes) {
            assert_eq!(read, whole, "bit {at}");
        }
    }
}
