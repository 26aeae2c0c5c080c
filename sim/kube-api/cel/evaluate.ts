import { isEqual, isObject, type JsonObject } from '../object.ts';
import { CelError } from './lex.ts';
import type { Expression } from './parse.ts';

/** The names that a rule may use. */
type Scope = Readonly<Record<string, unknown>>;

/** Evaluates a CEL expression. @throws CelError where CEL has no such value, such as an absent field */
export function evaluate(expression: Expression, scope: Scope): unknown {
  switch (expression.kind) {
    case 'value':
      return expression.value;
    case 'name':
      if (!Object.hasOwn(scope, expression.name)) throw new CelError(`undeclared reference to '${expression.name}'`);
      return scope[expression.name];
    case 'field':
      return fieldOf(evaluate(expression.of, scope), expression.name);
    case 'index':
      return fieldOf(evaluate(expression.of, scope), evaluate(expression.at, scope));
    case 'list':
      return expression.items.map((item) => evaluate(item, scope));
    case 'map':
      return Object.fromEntries(
        expression.entries.map(([key, value]) => [String(evaluate(key, scope)), evaluate(value, scope)]),
      );
    case 'not':
      return !truth(evaluate(expression.of, scope));
    case 'minus':
      return -Number(evaluate(expression.of, scope));
    case 'choice':
      return evaluate(truth(evaluate(expression.test, scope)) ? expression.yes : expression.no, scope);
    case 'binary':
      return binary(expression, scope);
    case 'call':
      return call(expression, scope);
    default:
      return expression satisfies never;
  }
}

function truth(value: unknown): boolean {
  if (typeof value !== 'boolean') throw new CelError(`expected true or false, got ${JSON.stringify(value)}`);
  return value;
}

function fieldOf(value: unknown, key: unknown): unknown {
  if (Array.isArray(value) && Number.isInteger(key) && Number(key) >= 0 && Number(key) < value.length) {
    return value[Number(key)];
  }
  if (isObject(value) && Object.hasOwn(value, String(key))) return value[String(key)];
  throw new CelError(`no such key: ${String(key)}`);
}

type Binary = Extract<Expression, { kind: 'binary' }>;

function binary({ sign, left, right }: Binary, scope: Scope): unknown {
  // Either side may decide, also when the other has no value.
  if (sign === '&&' || sign === '||') return junction(sign === '||', left, right, scope);
  const a = evaluate(left, scope);
  const b = evaluate(right, scope);
  if (sign === '==') return isEqual(a, b);
  if (sign === '!=') return !isEqual(a, b);
  if (sign === 'in')
    return Array.isArray(b) ? b.some((one) => isEqual(one, a)) : isObject(b) && Object.hasOwn(b, String(a));
  if (sign === '+' && Array.isArray(a) && Array.isArray(b)) return [...a, ...b];
  if (typeof a === 'string' && typeof b === 'string') return onTexts(sign, a, b);
  if (typeof a === 'number' && typeof b === 'number') return onNumbers(sign, a, b);
  throw new CelError(`no such overload: ${typeof a} ${sign} ${typeof b}`);
}

function junction(decisive: boolean, left: Expression, right: Expression, scope: Scope): boolean {
  let failure: CelError | undefined;
  for (const side of [left, right]) {
    try {
      if (truth(evaluate(side, scope)) === decisive) return decisive;
    } catch (error) {
      if (!(error instanceof CelError)) throw error;
      failure = error;
    }
  }
  if (failure !== undefined) throw failure;
  return !decisive;
}

function onTexts(sign: string, a: string, b: string): unknown {
  if (sign === '+') return a + b;
  return compare(sign, a < b ? -1 : a > b ? 1 : 0);
}

function onNumbers(sign: string, a: number, b: number): unknown {
  if (sign === '+') return a + b;
  if (sign === '-') return a - b;
  if (sign === '*') return a * b;
  if ((sign === '/' || sign === '%') && b === 0) throw new CelError('division by zero');
  if (sign === '/') return Number.isInteger(a) && Number.isInteger(b) ? Math.trunc(a / b) : a / b;
  if (sign === '%') return a % b;
  return compare(sign, a - b);
}

function compare(sign: string, difference: number): boolean {
  if (sign === '<') return difference < 0;
  if (sign === '<=') return difference <= 0;
  return sign === '>' ? difference > 0 : difference >= 0;
}

type Call = Extract<Expression, { kind: 'call' }>;

function call(expression: Call, scope: Scope): unknown {
  const { name, on, args } = expression;
  if (name === 'has') return has(args[0], scope);
  if (on !== undefined && MACROS.includes(name) && args.length === 2) return macro(expression, scope);
  const values = [...(on === undefined ? [] : [on]), ...args].map((arg) => evaluate(arg, scope));
  const run = FUNCTIONS[name];
  if (run === undefined) throw new CelError(`undeclared reference to '${name}'`);
  return run(...values);
}

function has(arg: Expression | undefined, scope: Scope): boolean {
  if (arg?.kind !== 'field') throw new CelError('has() wants a field');
  const of = evaluate(arg.of, scope);
  return isObject(of) && of[arg.name] !== undefined && of[arg.name] !== null;
}

const MACROS = ['all', 'exists', 'exists_one', 'filter', 'map'];

function macro({ name, on, args }: Call, scope: Scope): unknown {
  const [variable, body] = args;
  const over = on === undefined ? undefined : evaluate(on, scope);
  if (variable?.kind !== 'name' || body === undefined) throw new CelError(`${name}() wants a name and an expression`);
  const items: readonly unknown[] = Array.isArray(over) ? over : Object.keys((over ?? {}) as JsonObject);
  const of = (item: unknown) => evaluate(body, { ...scope, [variable.name]: item });
  if (name === 'map') return items.map(of);
  const chosen = items.filter((item) => truth(of(item)));
  if (name === 'filter') return chosen;
  if (name === 'all') return chosen.length === items.length;
  return name === 'exists' ? chosen.length > 0 : chosen.length === 1;
}

const FUNCTIONS: Readonly<Record<string, (...values: readonly unknown[]) => unknown>> = {
  size: (value) =>
    typeof value === 'string'
      ? [...value].length
      : Array.isArray(value)
        ? value.length
        : Object.keys(value as JsonObject).length,
  matches: (value, pattern) => new RegExp(String(pattern), 'u').test(String(value)),
  startsWith: (value, start) => String(value).startsWith(String(start)),
  endsWith: (value, end) => String(value).endsWith(String(end)),
  contains: (value, part) => String(value).includes(String(part)),
  int: (value) => Math.trunc(Number(value)),
  double: (value) => Number(value),
  string: (value) => String(value),
  lowerAscii: (value) => String(value).toLowerCase(),
  join: (list, separator) => (Array.isArray(list) ? list : []).join(String(separator ?? '')),
  // Only the type checker looks at it.
  dyn: (value) => value,
};
