import { describeValue } from '../../runtime/decode.ts';
import type { OwnerKind } from '../balancers/balancer-owner.ts';
import { blocking, type Notice } from '../balancers/notice.ts';
import type { Parser } from './annotation-values.ts';

/** What the documents say of a name. */
type RowText = {
  readonly name: string;
  readonly means: string;
};

/** An annotation of an owner that has an effect. */
export type ServedRow<T> = RowText & {
  /** What may be written. */
  readonly form: string;
  readonly parse: Parser<T>;
  /** What an error adds after what was expected. */
  readonly cure: string;
  /** Older names of the same annotation. */
  readonly olderNames?: readonly string[];
  /** Whether it may be a label, too. */
  readonly isLabelToo?: true;
};

/** An annotation of an owner that is not obeyed, and is reported. */
export type RefusedRow = RowText & {
  readonly why: string;
  /** What to do instead. */
  readonly instead: string;
  /** Whether a load balancer made without it would be another one than the one that is meant. */
  readonly blocks: boolean;
  /** Values that ask for nothing: they are not reported. */
  readonly neutral: readonly string[];
};

/** An annotation that the controller writes; what a person writes into it is replaced. */
export type WrittenRow = RowText;

/** The settings that rows make, by their keys; absent: no annotation. */
export type SettingsOfRows<R extends Readonly<Record<string, ServedRow<unknown>>>> = {
  readonly [K in keyof R]?: Extract<ReturnType<R[K]['parse']>, { readonly kind: 'value' }>['value'];
};

/** The annotations of one kind of owner. */
type AnnotationTable = {
  readonly kind: OwnerKind;
  /** By the setting that they make. */
  readonly served: Readonly<Record<string, ServedRow<unknown>>>;
  readonly refused: readonly RefusedRow[];
  /** Names that have a meaning elsewhere. */
  readonly others: readonly string[];
  /** Prefixes that belong to this subject alone: an unknown name with one of them is a spelling mistake. */
  readonly prefixes: readonly string[];
  /** Settings on which targets depend. */
  readonly ofTargets: readonly string[];
};

/** What the annotations and labels of an owner say. */
type ReadAnnotations<S> = {
  readonly settings: S;
  readonly notices: readonly Notice[];
  /** Whether what the targets depend on can be read. */
  readonly areTargetsKnown: boolean;
};

type Texts = Readonly<Record<string, string>>;
const NONE: Texts = {};
type Given = { readonly place: string; readonly text: string };

/** Unknown names that are shown; the others are counted. */
const SHOWN = 10;

/**
 * Returns what reads every annotation of an owner that is about its load balancer. What is not obeyed has a notice. Each object
 * is read once: its annotations and labels never change.
 */
export function annotationReader<S>({ kind, served, refused, others, prefixes, ofTargets }: AnnotationTable) {
  const rows = Object.values(served);
  const namesOf = ({ name, olderNames = [] }: ServedRow<unknown>): readonly string[] => [name, ...olderNames];
  const asLabels = new Set(rows.filter(({ isLabelToo }) => isLabelToo).flatMap(namesOf));
  const known = new Set([...refused.map(({ name }) => name), ...rows.flatMap(namesOf), ...others]);
  const memory = new WeakMap<Texts, { readonly labels: Texts; readonly read: ReadAnnotations<S> }>();
  return (annotations: Texts, labels: Texts = NONE): ReadAnnotations<S> => {
    const known = memory.get(annotations);
    if (known?.labels === labels) return known.read;
    const read = parse(annotations, labels);
    memory.set(annotations, { labels, read });
    return read;
  };

  function parse(annotations: Texts, labels: Texts): ReadAnnotations<S> {
    const settings: Record<string, unknown> = {};
    const invalid: string[] = [];
    const notices: Notice[] = [];
    for (const [key, row] of Object.entries(served)) {
      const given = [
        ...namesOf(row).flatMap((one) => findGiven('annotation', one, annotations)),
        ...(row.isLabelToo ? namesOf(row).flatMap((one) => findGiven('label', one, labels)) : []),
      ];
      const read = readGiven(row, given);
      if (read?.kind === 'value') settings[key] = read.value;
      if (read?.kind !== 'invalid') continue;
      notices.push(blocking('AnnotationInvalid', read.message));
      invalid.push(key);
    }
    const unknown = [...unknownOf('annotation', annotations, known), ...unknownOf('label', labels, asLabels)];
    return {
      // Each value is the one that the row of its key parsed.
      settings: settings as S,
      notices: [...notices, ...refused.flatMap((row) => refuse(row, annotations)), ...unknown],
      areTargetsKnown: !ofTargets.some((key) => invalid.includes(key)),
    };
  }

  function unknownOf(what: 'annotation' | 'label', texts: Texts, names: ReadonlySet<string>): readonly Notice[] {
    const unknown = Object.keys(texts).filter(
      (name) => !names.has(name) && prefixes.some((prefix) => name.startsWith(prefix)),
    );
    const more = unknown.length - SHOWN;
    return unknown.slice(0, SHOWN).map((name, at) => {
      const others = more > 0 && at === SHOWN - 1 ? `, nor have ${more} others` : '';
      const message = `${what} ${describeValue(name)} has no meaning here${others}; docs/reference/${kind}-annotations.md has all that have one`;
      return { reason: 'AnnotationRefused', message, blocks: false };
    });
  }
}

/** @param given where the setting is written, what counts first */
function readGiven(
  { parse, cure }: ServedRow<unknown>,
  given: readonly Given[],
):
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'invalid'; readonly message: string }
  | undefined {
  const [first] = given;
  if (first === undefined) return undefined;
  const { place, text } = first;
  const other = given.find((one) => one.text !== text);
  if (other !== undefined) {
    const message = `${other.place} contradicts ${place}: ${describeValue(other.text)} and ${describeValue(text)}; remove one of them`;
    return { kind: 'invalid', message };
  }
  const parsed = parse(text);
  if (parsed.kind === 'value') return parsed;
  return { kind: 'invalid', message: `${place} must be ${parsed.expected}, not ${describeValue(text)}; ${cure}` };
}

function refuse({ name, why, instead, neutral, blocks }: RefusedRow, annotations: Texts): readonly Notice[] {
  return findGiven('annotation', name, annotations).flatMap(({ place, text }): readonly Notice[] => {
    if (neutral.includes(text)) return [];
    const message = `${place}: ${describeValue(text)} is not served: ${why}; ${instead}`;
    return [{ reason: 'AnnotationRefused', message, blocks }];
  });
}

function findGiven(kind: 'annotation' | 'label', name: string, texts: Texts): readonly Given[] {
  const text = Object.hasOwn(texts, name) ? texts[name] : undefined;
  return text === undefined ? [] : [{ place: `${kind} ${name}`, text }];
}
