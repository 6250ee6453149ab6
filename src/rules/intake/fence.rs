//! Where a reply is split: fenced blocks as CommonMark has them, human forms, and the text outside them.
//! Must never look inside a line for anything but a marker, and knows no JSON.

/// A stretch of the text that is read by itself; no value spans two.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// The first byte of its content.
    pub start: usize,
    /// The byte after its content.
    pub end: usize,
    pub role: Role,
    /// The fence it stands in, as an index of [`Layout::fences`].
    pub fence: Option<usize>,
}

/// What a block is read as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    /// Text that may hold JSON.
    Text,
    /// A fence whose info string says that it holds something else.
    Skipped,
    /// A human form, its marker lines included.
    Form(Form),
}

/// The lines of a human form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    /// The first byte after the line that opens it.
    pub start: usize,
    /// The first byte of the line that ends it, or where the form is cut.
    pub end: usize,
    /// White space that stands before its first marker, and so before every line of a form that was moved.
    pub indent: String,
    /// Whether its last line was found.
    pub complete: bool,
}

/// A fenced block's own lines.
#[derive(Debug, Clone)]
pub(super) struct Fence {
    /// The line that opens it, its line end included.
    pub opening: (usize, usize),
    /// The line that closes it; none where the fence runs to the end.
    pub closing: Option<(usize, usize)>,
    /// The character of the fence.
    pub mark: u8,
    /// How many there are.
    pub length: usize,
    reads: Reads,
}

/// What an info string lets a fence be read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    Everything,
    FormsOnly,
    Nothing,
}

/// A reply, split.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// In order; empty ones are left out.
    pub blocks: Vec<Block>,
    pub fences: Vec<Fence>,
}

/// One line: its first byte, the byte after its text, and the first byte of the next.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    end: usize,
    next: usize,
}

/// Splits a text in one pass over its lines.
pub(super) fn layout(text: &str) -> Layout {
    let mut splitter = Splitter { text, layout: Layout::default(), piece: 0, open: None, form: None };
    let mut start = 0;
    while start < text.len() {
        let line = line_at(text, start);
        splitter.line(line);
        start = line.next;
    }
    splitter.finish()
}

fn line_at(text: &str, start: usize) -> Line {
    let bytes = text.as_bytes();
    let found = bytes[start..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    let end = found.map_or(bytes.len(), |length| start + length);
    let next = match bytes.get(end..) {
        Some([b'\r', b'\n', ..]) => end + 2,
        Some([_, ..]) => end + 1,
        _ => end,
    };
    Line { start, end, next }
}

struct Splitter<'a> {
    text: &'a str,
    layout: Layout,
    /// Where the block that is being read begins.
    piece: usize,
    /// The fence that is open.
    open: Option<usize>,
    /// The form that is open: its first byte, its handoff, and the rest.
    form: Option<(usize, String, Form)>,
}

impl Splitter<'_> {
    fn line(&mut self, line: Line) {
        let text = &self.text[line.start..line.end];
        let marker = form_marker(text);
        // A form's text may hold fences of its own; only its last line ends it, or the next form.
        if let Some((_, handoff, _)) = &self.form {
            match marker {
                Some(Marker::End(id)) if id == handoff => self.end_form(line, true),
                Some(Marker::Start(_)) => {
                    self.end_form(Line { next: line.start, ..line }, false);
                    self.start_form(line, marker);
                }
                _ => {}
            }
            return;
        }
        if let Some(index) = self.open {
            let fence = &self.layout.fences[index];
            if closes(text, fence) {
                self.push(line.start);
                self.layout.fences[index].closing = Some((line.start, line.next));
                self.open = None;
                self.piece = line.next;
            } else if fence.reads != Reads::Nothing {
                self.start_form(line, marker);
            }
        } else if let Some((mark, length, reads)) = opens(text) {
            self.push(line.start);
            let opening = (line.start, line.next);
            self.layout.fences.push(Fence { opening, closing: None, mark, length, reads });
            self.open = Some(self.layout.fences.len() - 1);
            self.piece = line.next;
        } else {
            self.start_form(line, marker);
        }
    }

    fn start_form(&mut self, line: Line, marker: Option<Marker>) {
        let Some(Marker::Start(handoff)) = marker else { return };
        self.push(line.start);
        let text = &self.text[line.start..line.end];
        let indent = text[..text.len() - text.trim_start().len()].to_owned();
        let form = Form { start: line.next, end: line.next, indent, complete: false };
        self.form = Some((line.start, handoff.to_owned(), form));
    }

    fn end_form(&mut self, line: Line, complete: bool) {
        let Some((start, _, form)) = self.form.take() else { return };
        let role = Role::Form(Form { end: line.start, complete, ..form });
        self.layout.blocks.push(Block { start, end: line.next, role, fence: self.open });
        self.piece = line.next;
    }

    /// Ends the block that is being read.
    fn push(&mut self, end: usize) {
        if self.piece < end {
            let reads = self.open.map_or(Reads::Everything, |index| self.layout.fences[index].reads);
            let role = if reads == Reads::Everything { Role::Text } else { Role::Skipped };
            self.layout.blocks.push(Block { start: self.piece, end, role, fence: self.open });
        }
    }

    fn finish(mut self) -> Layout {
        let end = self.text.len();
        if self.form.is_some() {
            self.end_form(Line { start: end, end, next: end }, false);
        }
        self.push(end);
        self.layout
    }
}

/// A line that begins or ends a human form.
#[derive(Clone, Copy)]
enum Marker<'a> {
    Start(&'a str),
    End(&'a str),
}

fn form_marker(line: &str) -> Option<Marker<'_>> {
    let text = line.trim();
    let (id, end) = match text.strip_prefix("# NF FORM ") {
        Some(id) => (id.trim(), false),
        None => (text.strip_prefix("# END NF FORM ")?.trim(), true),
    };
    let whole = !id.is_empty() && !id.contains(char::is_whitespace);
    whole.then_some(if end { Marker::End(id) } else { Marker::Start(id) })
}

/// The run of fence characters at a line's start, after at most three spaces, and what follows it.
fn run_of_marks(line: &str) -> Option<(u8, usize, &str)> {
    let text = line.trim_start_matches(' ');
    let mark = *text.as_bytes().first()?;
    if line.len() - text.len() > 3 || !matches!(mark, b'`' | b'~') {
        return None;
    }
    let length = text.bytes().take_while(|byte| *byte == mark).count();
    (length >= 3).then(|| (mark, length, &text[length..]))
}

fn opens(line: &str) -> Option<(u8, usize, Reads)> {
    let (mark, length, info) = run_of_marks(line)?;
    if mark == b'`' && info.contains('`') {
        return None;
    }
    let word = info.split_whitespace().next().unwrap_or("").to_ascii_lowercase();
    let reads = match word.as_str() {
        "" | "json" | "jsonc" | "text" | "txt" | "plaintext" => Reads::Everything,
        "yaml" | "yml" => Reads::FormsOnly,
        _ => Reads::Nothing,
    };
    Some((mark, length, reads))
}

fn closes(line: &str, fence: &Fence) -> bool {
    run_of_marks(line).is_some_and(|(mark, length, rest)| {
        mark == fence.mark && length >= fence.length && rest.chars().all(|c| c == ' ' || c == '\t')
    })
}

/// The length of a closing fence that was glued to the end of the value: `}` and then the marks. A fence
/// that is closed by a line of its own has none.
pub(super) fn glued_closing(fence: &Fence, after: &str) -> usize {
    let marks = after.trim_start_matches([' ', '\t']);
    let length = marks.bytes().take_while(|byte| *byte == fence.mark).count();
    let rest = &marks[length..];
    let line_ends =
        rest.trim_start_matches([' ', '\t']).chars().next().is_none_or(|c| matches!(c, '\r' | '\n'));
    if length >= fence.length && line_ends { after.len() - rest.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of each block that is read, and of each that is not, in brackets.
    fn blocks(text: &str) -> Vec<String> {
        let layout = layout(text);
        let show = |block: &Block| match &block.role {
            Role::Text => text[block.start..block.end].to_owned(),
            Role::Skipped => format!("[{}]", &text[block.start..block.end]),
            Role::Form(form) => format!("form{}: {}", u8::from(form.complete), &text[form.start..form.end]),
        };
        layout.blocks.iter().map(show).collect()
    }

    #[test]
    fn fences_follow_commonmark() {
        for (text, want) in [
            ("```\nA\n```\n", vec!["A\n"]),
            ("a\n```json\nA\n```\nb", vec!["a\n", "A\n", "b"]),
            ("~~~ JSON x=1\nA\n~~~~  \n", vec!["A\n"]),
            ("   ```\nA\n  ```\nb", vec!["A\n", "b"]),
            ("    ```\nA\n", vec!["    ```\nA\n"]),
            ("\t```\nA\n", vec!["\t```\nA\n"]),
            ("``\nA\n``", vec!["``\nA\n``"]),
            ("```` \n```\nA\n```\n````\nb", vec!["```\nA\n```\n", "b"]),
            ("```\nA\n~~~\nB\n```", vec!["A\n~~~\nB\n"]),
            ("```\nA\n``` x\nB", vec!["A\n``` x\nB"]),
            ("```a`b\nA\n", vec!["```a`b\nA\n"]),
            ("~~~ json `x`\nA", vec!["A"]),
            ("```bash\nA\n```\nb", vec!["[A\n]", "b"]),
            ("```json5\nA", vec!["[A]"]),
            ("```Text\r\nA\r\n```\r\nb", vec!["A\r\n", "b"]),
            ("```\rA\r```\rb", vec!["A\r", "b"]),
            ("> ```json\n> A\n> ```", vec!["> ```json\n> A\n> ```"]),
            ("```\n```\n", vec![]),
        ] {
            assert_eq!(blocks(text), want, "{text:?}");
        }
    }

    #[test]
    fn forms_are_taken_out_wherever_they_may_stand() {
        let form = "# NF FORM h-1\na: 1\n# END NF FORM h-1\n";
        for (text, want) in [
            (form.to_owned(), vec!["form1: a: 1\n"]),
            (format!("x\n{form}y"), vec!["x\n", "form1: a: 1\n", "y"]),
            (format!("```yaml\n{form}```\n"), vec!["form1: a: 1\n"]),
            (format!("```yml\nq: 1\n{form}```\nz"), vec!["[q: 1\n]", "form1: a: 1\n", "z"]),
            (format!("```bash\n{form}```\n"), vec!["[# NF FORM h-1\na: 1\n# END NF FORM h-1\n]"]),
            ("# NF FORM h-1\na: 1\n".to_owned(), vec!["form0: a: 1\n"]),
            ("# NF FORM h-1\na\n# END NF FORM h-2\n".to_owned(), vec!["form0: a\n# END NF FORM h-2\n"]),
            (format!("# NF FORM h-0\nb\n{form}"), vec!["form0: b\n", "form1: a: 1\n"]),
            (
                "# NF FORM h-1\na: |\n  ```\n# END NF FORM h-1\nx".to_owned(),
                vec!["form1: a: |\n  ```\n", "x"],
            ),
            ("see # NF FORM h-1\n".to_owned(), vec!["see # NF FORM h-1\n"]),
        ] {
            assert_eq!(blocks(&text), want, "{text:?}");
        }
    }

    #[test]
    fn a_glued_closing_fence_is_a_marker_only_where_the_line_ends() {
        let fence = layout("```\nA").fences[0].clone();
        for (after, want) in
            [("```", 3), ("  ````  \nx", 6), ("``", 0), ("``` x", 0), ("~~~", 0), ("\n```", 0)]
        {
            assert_eq!(glued_closing(&fence, after), want, "{after:?}");
        }
    }
}
