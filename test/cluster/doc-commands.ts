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

/** A fenced block of a page. */
type PageBlock = {
  /** The heading that it stands under. */
  readonly heading: string;
  /** What stands behind the fence: `sh`, `yaml`, '' for what is shown. */
  readonly info: string;
  /** Of `sh` the commands, each on one line and without comments; else the lines as they are. */
  readonly lines: readonly string[];
};

/** Finds all fenced blocks of a page, in order. */
export function pageBlocks(markdown: string): readonly PageBlock[] {
  const found: PageBlock[] = [];
  let heading = '';
  let open: { info: string; lines: string[] } | undefined;
  for (const line of markdown.split('\n')) {
    const fence = line.startsWith('```');
    if (open === undefined && fence) open = { info: line.slice(3), lines: [] };
    else if (open !== undefined && fence) {
      const { info, lines } = open;
      found.push({ heading, info, lines: info.startsWith('sh') ? commandsOf(lines) : lines });
      open = undefined;
    } else if (open !== undefined) open.lines.push(line);
    else if (/^#+ /.test(line)) heading = line.replace(/^#+ /, '');
  }
  return found;
}

/** Finds the first block of a language under a heading. @throws Error when the page has none */
export function blockOf(markdown: string, language: string, heading: string): string {
  // A comment in a block looks like a heading.
  const blocks: string[] = [];
  const outline = markdown.replaceAll(/^```[\s\S]*?^```/gm, (text) => `<<${blocks.push(text) - 1}>>`);
  const part = outline.split(/^#+ /m).find((text) => text.startsWith(`${heading}\n`));
  const section = part?.replaceAll(/<<(\d+)>>/g, (_, index) => blocks[Number(index)] ?? '');
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
