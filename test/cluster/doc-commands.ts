/** The commands of one block of a page, and the heading that it stands under. */
type DocCommands = { readonly heading: string; readonly lines: readonly string[] };

/** Finds what a page tells people to run: its `sh` blocks, a command each line, without comments. */
export function shellCommandsOf(markdown: string): readonly DocCommands[] {
  const found: DocCommands[] = [];
  let heading = '';
  let block: string[] | undefined;
  for (const line of markdown.split('\n')) {
    if (block === undefined && /^#+ /.test(line)) heading = line.replace(/^#+ /, '');
    else if (block === undefined && line === '```sh') block = [];
    else if (block !== undefined && line === '```') {
      found.push({ heading, lines: commandsOf(block) });
      block = undefined;
    } else block?.push(line);
  }
  return found;
}

/** Finds the first block of a language under a heading. @throws Error when the page has none */
export function blockOf(markdown: string, language: string, heading: string): string {
  const section = markdown.split(/^#+ /m).find((text) => text.startsWith(`${heading}\n`));
  const [, block] = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(section ?? '') ?? [];
  if (block === undefined) throw new Error(`no block of ${language} under ${heading}`);
  return block;
}

function commandsOf(lines: readonly string[]): readonly string[] {
  const joined = lines.join('\n').replaceAll(/\\\n\s*/g, '');
  return joined
    .split('\n')
    .map((line) => line.replace(/(^|\s+)# .*$/, '').trim())
    .filter((line) => line !== '');
}
