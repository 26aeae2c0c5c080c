/** What `graph` makes. */
export type GraphFormat = 'mermaid' | 'svg' | 'html' | 'json';

/** Finds what is to be made: what was asked for, or what the file's ending says, or Mermaid. */
export function findFormat(asked: GraphFormat | undefined, file: string | undefined): GraphFormat {
  if (asked !== undefined) return asked;
  const ending = file?.toLowerCase().match(/\.([a-z]+)$/)?.[1];
  switch (ending) {
    case 'svg':
    case 'json':
      return ending;
    case 'html':
    case 'htm':
      return 'html';
    default:
      return 'mermaid';
  }
}
