/** Option for the output format: a table in the width of the terminal or in full width, or a document for programs. */
export const OUTPUT_OPTION = {
  output: {
    type: 'string',
    alias: 'o',
    summary: 'how to print it',
    metavar: 'FORMAT',
    choices: ['table', 'wide', 'json', 'yaml'],
    default: 'table',
  },
} as const;

/** One of the choices of OUTPUT_OPTION. */
export type OutputFormat = (typeof OUTPUT_OPTION)['output']['choices'][number];
