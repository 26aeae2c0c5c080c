/**
 * Removes blocks under secret-sounding names from a text. It finds them by indentation: YAML (`password: |` and the
 * lines below it, mappings, lists), and JSON written over several lines. Lines may have the prefix that container
 * runtimes write.
 */
export function redactBlocks(text: string, isSecretName: (name: string) => boolean): string {
  const lines: string[] = [];
  let hidden: Block | undefined;
  for (const line of joinPartialLines(text).split('\n')) {
    const content = line.replace(RUNTIME_PREFIX, '');
    const indent = content.length - content.trimStart().length;
    if (hidden !== undefined && isWithin(hidden, content, indent)) continue;
    hidden = undefined;
    const match = BLOCK_END.test(content) ? BLOCK_HEAD.exec(content) : null;
    if (match?.[2] === undefined || !isSecretName(match[2])) lines.push(line);
    else {
      hidden = { indent, isItem: match[1] !== undefined };
      lines.push(`${line.replace(BLOCK_END, '$1')} [removed]`);
    }
  }
  return lines.join('\n');
}

/** Joins lines that a container runtime has split, so that no secret is spread over two lines. */
function joinPartialLines(text: string): string {
  if (!text.includes(' P ')) return text;
  let isOpen = false;
  const pieces: string[] = [];
  for (const line of text.split('\n')) {
    const flag = RUNTIME_PREFIX.exec(line)?.[1];
    if (isOpen && flag !== undefined) pieces.push(line.replace(RUNTIME_PREFIX, ''));
    else pieces.push(pieces.length === 0 ? line : `\n${line}`);
    isOpen = flag === 'P';
  }
  return pieces.join('');
}

/** A name whose value is in the lines below it. */
type Block = { readonly indent: number; readonly isItem: boolean };

/** Returns whether a line belongs to a block. Items of a list may have the same indentation as the name of the list. */
function isWithin({ indent: head, isItem }: Block, content: string, indent: number): boolean {
  return content.trim() === '' || indent > head || (indent === head && !isItem && content.startsWith('- ', indent));
}

/** Prefix of a log line: time, stream, whole (F) or partial (P). @see Kubernetes CRI, log format */
const RUNTIME_PREFIX = /^\d{4}-\S{1,40} (?:stdout|stderr) ([FP]) /;
const BLOCK_HEAD = /^\s*(- )?\\*["']?([\w.-]+)\\*["']?:/;
const BLOCK_END = /(:)[ \t]{0,8}(?:[|>][-+\d]{0,2}|[[{])?[ \t]{0,8}$/;
