//! Why a reply is no answer, and what to ask the reviewer for. Must never hint at a verdict.

crate::words! {
    /// Why intake refuses a reply (semantic jobs, "Reply intake"). All are exit 5.
    Reason {
        /// The bytes are neither UTF-8 nor UTF-16 with its byte order mark.
        Encoding = "encoding",
        /// More than 8 MiB, or a human form of more than the YAML limit.
        TooLarge = "too_large",
        /// Nothing but white space.
        Empty = "empty",
        /// Nothing but what a program shows in place of a pasted text.
        Placeholder = "placeholder",
        /// The lone word "truncated": the packet lost its end on its way to the reviewer.
        PacketCut = "packet_cut",
        /// The reply ends inside a value.
        Truncated = "truncated",
        /// A candidate does not parse, or is a part of something that does not.
        Broken = "broken",
        /// An object has a key twice.
        DuplicateKey = "duplicate_key",
        /// A number is not finite.
        NonFinite = "non_finite",
        /// An integer is beyond 2^53 - 1 either way.
        IntegerRange = "integer_range",
        /// A string holds half of a surrogate pair.
        LoneSurrogate = "lone_surrogate",
        /// Brackets are nested deeper than 128.
        Depth = "depth",
        /// Two different candidates, or a broken one beside a sound one.
        Ambiguous = "ambiguous",
        /// The only candidate is the packet's form with its blanks.
        FormNotFilledIn = "form_not_filled_in",
        /// Nothing with an `nf` member at its top level.
        NoAnswer = "no_answer",
    }
}

impl Reason {
    /// What to ask the reviewer for where a human form is refused.
    pub const fn ask_form(self) -> &'static str {
        match self {
            Self::Broken => {
                "The form could not be read. Please send it again, both NF FORM lines and all between them: \
                 every line indented as it came, each text between double quotes."
            }
            Self::Truncated => "The form arrived without its end. Please send it again, with its last line.",
            _ => self.ask(),
        }
    }

    /// What to ask the reviewer for, as one or two sentences to paste back.
    pub const fn ask(self) -> &'static str {
        match self {
            Self::Encoding => {
                "Your answer did not arrive as plain text. Please send it again as UTF-8 text: one JSON \
                 block, in the form that the packet gives."
            }
            Self::TooLarge => {
                "Your answer is longer than can be read. Please send only the JSON block that the packet \
                 asks for, without anything around it."
            }
            Self::Empty => {
                "Nothing arrived. Please send your answer as one JSON block, in the form that the packet \
                 gives."
            }
            Self::Placeholder => {
                "Only a placeholder for a pasted text arrived, not the text. Please send the answer itself \
                 as one JSON block."
            }
            Self::PacketCut => {
                "The packet lost its end on its way to you. It comes again, as a file: please judge that one."
            }
            Self::Truncated => {
                "Your answer arrived without its end. Please send the whole of it again, as one JSON block; \
                 shorter texts inside it are fine."
            }
            Self::Broken => {
                "Your answer could not be read as JSON. Please send the same answer again as one JSON block: \
                 straight double quotes, no comments, no trailing commas, every bracket closed."
            }
            Self::DuplicateKey => {
                "Your answer has the same key twice in one object. Please send it again with each key once."
            }
            Self::NonFinite => {
                "Your answer has a number that is not finite. Please send it again with plain decimal \
                 numbers."
            }
            Self::IntegerRange => {
                "Your answer has an integer that is too large to be read exactly. Please send it again with \
                 smaller numbers, or the number as text."
            }
            Self::LoneSurrogate => {
                "Your answer has an incomplete \\u escape in a text. Please send it again with the \
                 characters themselves."
            }
            Self::Depth => {
                "Your answer nests brackets too deep. Please send it again in the form that the packet gives."
            }
            Self::Ambiguous => {
                "Your message held more than one answer. Please send exactly one JSON block: the answer that \
                 you stand by."
            }
            Self::FormNotFilledIn => {
                "The form came back with its blanks. Please fill it in and send it again as one block."
            }
            Self::NoAnswer => {
                "No answer in the packet's form was found. Please send one JSON object with the members that \
                 the return form shows, \"nf\" among them at its top level."
            }
        }
    }
}
