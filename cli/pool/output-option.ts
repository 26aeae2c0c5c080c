/** How a view is printed: for people, at the terminal's width or as wide as it is, or for programs. */
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
