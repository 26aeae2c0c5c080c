/** A rule that cannot be read or does not come to a value. */
export class CelError extends Error {
  readonly code = 'CEL';

  constructor(message: string) {
    super(message);
    this.name = 'CelError';
  }
}

/** One word of a rule. */
export type Token = { readonly kind: 'number' | 'text' | 'name' | 'sign' | 'end'; readonly text: string };

const TOKEN =
  /\s*(?:(?<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?u?)|(?<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<name>[A-Za-z_][A-Za-z0-9_]*)|(?<sign>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()[\]{}]))/y;

/** Splits a CEL expression into words. @throws CelError */
export function lex(source: string): readonly Token[] {
  const tokens: Token[] = [];
  const text = source.trimEnd();
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const groups = TOKEN.exec(text)?.groups;
    if (groups === undefined) throw new CelError(`cannot read the rule at ${JSON.stringify(text.slice(at, at + 20))}`);
    for (const kind of ['number', 'text', 'name', 'sign'] as const) {
      const found = groups[kind];
      if (found !== undefined) tokens.push({ kind, text: found });
    }
  }
  return [...tokens, { kind: 'end', text: '' }];
}
