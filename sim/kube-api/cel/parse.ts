import { CelError, lex, type Token } from './lex.ts';

/** An expression of the Common Expression Language. */
export type Expression =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'field'; readonly of: Expression; readonly name: string }
  | { readonly kind: 'index'; readonly of: Expression; readonly at: Expression }
  | { readonly kind: 'call'; readonly name: string; readonly on?: Expression; readonly args: readonly Expression[] }
  | { readonly kind: 'list'; readonly items: readonly Expression[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [key: Expression, value: Expression])[] }
  | { readonly kind: 'not' | 'minus'; readonly of: Expression }
  | { readonly kind: 'binary'; readonly sign: string; readonly left: Expression; readonly right: Expression }
  | { readonly kind: 'choice'; readonly test: Expression; readonly yes: Expression; readonly no: Expression };

/** Binary operators, loosest first. */
const LEVELS: readonly (readonly string[])[] = [
  ['||'],
  ['&&'],
  ['==', '!=', '<', '<=', '>', '>=', 'in'],
  ['+', '-'],
  ['*', '/', '%'],
];

/** Parses a CEL expression, as far as rules of custom resources and admission policies use the language. @throws CelError */
export function parseCel(source: string): Expression {
  const parser = new Parser(lex(source));
  const expression = parser.expression();
  parser.expect('');
  return expression;
}

const parsed = new Map<string, Expression>();

/** The same for an expression that is evaluated again and again. @throws CelError */
export function expressionOf(source: string): Expression {
  const expression = parsed.get(source) ?? parseCel(source);
  parsed.set(source, expression);
  return expression;
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  expression(): Expression {
    const test = this.#binary(0);
    if (!this.#take('?')) return test;
    const yes = this.expression();
    this.expect(':');
    return { kind: 'choice', test, yes, no: this.expression() };
  }

  /** Goes past a sign, or the end. @throws CelError when something else is there */
  expect(sign: string): void {
    const token = this.#peek();
    const isThere = sign === '' ? token.kind === 'end' : token.kind === 'sign' && token.text === sign;
    if (!isThere) throw new CelError(`expected ${sign === '' ? 'the end' : sign}, found ${token.text || 'the end'}`);
    this.#at += 1;
  }

  #peek(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: '' };
  }

  #take(text: string): boolean {
    const token = this.#peek();
    const isIt = token.text === text && (token.kind === 'sign' || text === 'in');
    if (isIt) this.#at += 1;
    return isIt;
  }

  #binary(level: number): Expression {
    const signs = LEVELS[level];
    if (signs === undefined) return this.#unary();
    let left = this.#binary(level + 1);
    for (;;) {
      const sign = signs.find((one) => this.#take(one));
      if (sign === undefined) return left;
      left = { kind: 'binary', sign, left, right: this.#binary(level + 1) };
    }
  }

  #unary(): Expression {
    if (this.#take('!')) return { kind: 'not', of: this.#unary() };
    if (this.#take('-')) return { kind: 'minus', of: this.#unary() };
    return this.#member();
  }

  #member(): Expression {
    let of = this.#primary();
    for (;;) {
      if (this.#take('.')) {
        const { text: name } = this.#next('name');
        of = this.#take('(') ? { kind: 'call', name, on: of, args: this.#list(')') } : { kind: 'field', of, name };
      } else if (this.#take('[')) {
        of = { kind: 'index', of, at: this.expression() };
        this.expect(']');
      } else return of;
    }
  }

  #primary(): Expression {
    if (this.#take('(')) {
      const inner = this.expression();
      this.expect(')');
      return inner;
    }
    if (this.#take('[')) return { kind: 'list', items: this.#list(']') };
    if (this.#take('{')) return { kind: 'map', entries: this.#entries() };
    const token = this.#peek();
    this.#at += 1;
    if (token.kind === 'number') return { kind: 'value', value: Number(token.text.replace('u', '')) };
    if (token.kind === 'text') return { kind: 'value', value: unquote(token.text) };
    if (token.kind !== 'name') throw new CelError(`expected a value, found ${token.text || 'the end'}`);
    if (token.text === 'true' || token.text === 'false') return { kind: 'value', value: token.text === 'true' };
    if (token.text === 'null') return { kind: 'value', value: null };
    if (this.#take('(')) return { kind: 'call', name: token.text, args: this.#list(')') };
    return { kind: 'name', name: token.text };
  }

  #list(end: string): readonly Expression[] {
    if (this.#take(end)) return [];
    const items = [this.expression()];
    while (this.#take(',')) items.push(this.expression());
    this.expect(end);
    return items;
  }

  #entries(): readonly (readonly [Expression, Expression])[] {
    if (this.#take('}')) return [];
    const entries = [this.#entry()];
    while (this.#take(',')) entries.push(this.#entry());
    this.expect('}');
    return entries;
  }

  #entry(): readonly [Expression, Expression] {
    const key = this.expression();
    this.expect(':');
    return [key, this.expression()];
  }

  #next(kind: Token['kind']): Token {
    const token = this.#peek();
    if (token.kind !== kind) throw new CelError(`expected a ${kind}, found ${token.text || 'the end'}`);
    this.#at += 1;
    return token;
  }
}

function unquote(text: string): string {
  const inner = text.slice(1, -1);
  return inner.replace(/\\(.)/g, (_, char: string) => ({ n: '\n', t: '\t', r: '\r' })[char] ?? char);
}
