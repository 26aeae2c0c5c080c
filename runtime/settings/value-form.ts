/**
 * What JSON Schema can check of a value before the program reads it. It never refuses what `parse` accepts; where a form cannot say
 * all of a rule, it accepts more, and the program refuses that.
 */
export type ValueForm =
  | { readonly kind: 'switch' }
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | {
      readonly kind: 'number';
      readonly min: number;
      readonly max: number;
      /** One more number that is accepted. */
      readonly other?: number;
    }
  | {
      readonly kind: 'text';
      /**
       * A regular expression for the whole text, without ^ and $. Helm reads it as RE2, tests as JavaScript does: no
       * flags, no look-around, no names of groups.
       */
      readonly body: string;
    };

/** Makes the form of a text that a regular expression matches. @throws Error unless it has both anchors and no flag */
export function patternForm({ source, flags }: RegExp): ValueForm {
  const [, body] = /^\^(.*)\$$/.exec(source) ?? [];
  if (body === undefined || flags !== '') throw new Error(`/${source}/${flags}: expected ^ and $ and no flag`);
  return { kind: 'text', body: body.replaceAll('\\/', '/') };
}

/** Returns the form of several such texts with commas between them. */
export function listForm(item: ValueForm): ValueForm {
  if (item.kind !== 'text') throw new Error(`no list of values of the form ${item.kind}`);
  return { kind: 'text', body: `,*((${item.body})(,+(${item.body}))*,*)?` };
}

/** Milliseconds of each unit of a time. */
export const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/**
 * Returns the form of a time such as 500ms or 1m30s, in milliseconds; `hasZero`: 0s is accepted too. One of several parts is
 * compared with the maximum part by part, and not with the minimum.
 */
export function durationForm(minMs: number, maxMs: number, hasZero = false): ValueForm {
  const units = Object.entries(UNIT_MS);
  const single = units.flatMap(([unit, ms]) => {
    const [from, to] = [Math.ceil(minMs / ms), Math.floor(maxMs / ms)];
    return from > to ? [] : [`${integerRange(from, to)}${unit}`];
  });
  const part = `(${units.map(([unit, ms]) => `${integerRange(0, Math.floor(maxMs / ms))}${unit}`).join('|')})`;
  const zero = hasZero ? [`0+(${units.map(([unit]) => unit).join('|')})`] : [];
  return { kind: 'text', body: `(${[...single, ...zero, `${part}${part}+`].join('|')})` };
}

/** Returns a regular expression for the whole numbers from `min` to `max` in decimal, zeros in front of them allowed. */
export function integerRange(min: number, max: number): string {
  const unbounded = max === Number.POSITIVE_INFINITY;
  const most = unbounded ? 10 ** String(min).length - 1 : max;
  const parts = unbounded ? [`[1-9][0-9]{${String(most).length},}`] : [];
  for (let digits = String(min).length; digits <= String(most).length; digits++) {
    const from = Math.max(min, digits === 1 ? 0 : 10 ** (digits - 1));
    parts.push(sameLengthRange(String(from), String(Math.min(most, 10 ** digits - 1))));
  }
  return `0*(${parts.join('|')})`;
}

/** The same for two texts of digits of one length, the first not above the second. */
function sameLengthRange(from: string, to: string): string {
  if (from === to) return from;
  const [low = '', high = ''] = [from[0], to[0]];
  const [lowRest, highRest] = [from.slice(1), to.slice(1)];
  if (low === high) return `${low}${sameLengthRange(lowRest, highRest)}`;
  const startsAtZeros = /^0*$/.test(lowRest);
  const endsAtNines = /^9*$/.test(highRest);
  const [first, last] = [Number(low) + (startsAtZeros ? 0 : 1), Number(high) - (endsAtNines ? 0 : 1)];
  const parts = [
    ...(startsAtZeros ? [] : [`${low}${sameLengthRange(lowRest, '9'.repeat(lowRest.length))}`]),
    ...(first > last ? [] : [`[${first}-${last}]${'[0-9]'.repeat(lowRest.length)}`]),
    ...(endsAtNines ? [] : [`${high}${sameLengthRange('0'.repeat(highRest.length), highRest)}`]),
  ];
  return parts.length === 1 ? parts.join('') : `(${parts.join('|')})`;
}
