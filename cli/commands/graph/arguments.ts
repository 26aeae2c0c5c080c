import type { ArgsOf } from '../../command/command.ts';

/** Positional arguments of `graph`. */
export const POSITIONALS = {
  subject: {
    summary: 'Pod whose path is drawn: namespace/name, name, address, container id or host interface; or an ENI',
    isOptional: true,
    completes: 'pod',
  },
} as const;

/** Options of `graph`. */
export const OPTIONS = {
  output: {
    type: 'string',
    alias: 'o',
    summary: "what to make; default: by the file's ending, else svg",
    metavar: 'FORMAT',
    choices: ['svg', 'html', 'json'],
    formerChoices: { mermaid: 'take svg, a picture that GitHub and GitLab show, too, or json for the boxes and edges' },
  },
  to: { type: 'string', summary: 'where the Pod sends to', metavar: 'ADDR' },
  file: {
    type: 'string',
    alias: 'f',
    summary: 'where to write it, - for standard output, which is the default',
    metavar: 'FILE',
    completes: 'file',
  },
} as const;

/** Arguments of `graph`. */
export type GraphArgs = ArgsOf<typeof OPTIONS, typeof POSITIONALS>;
