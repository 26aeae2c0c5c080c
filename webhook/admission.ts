/** What is added to a new Pod, and the warnings for its creator. */
export type Admission = { readonly patch: readonly AddOperation[]; readonly warnings: readonly string[] };

/** One step of a JSON patch. An `add` where a value is already replaces it. @see RFC 6902 section 4.1 */
export type AddOperation = { readonly op: 'add'; readonly path: string; readonly value: unknown };

/** Makes one step of a patch. */
export function add(path: string, value: unknown): AddOperation {
  return { op: 'add', path, value };
}

/** Escapes a name as one segment of a JSON pointer. @see RFC 6901 section 3 */
export function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
