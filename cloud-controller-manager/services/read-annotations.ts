import { LOAD_BALANCER_ID_ANNOTATION } from '../../crd/foreign-names.ts';
import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import { describeValue } from '../../runtime/decode.ts';
import { blocking, type Notice } from '../balancers/notice.ts';
import type { ServedRow, WrittenRow } from './annotation-row.ts';
import { REFUSED_ANNOTATIONS } from './refused-annotations.ts';
import { SERVED_ANNOTATIONS, type ServiceSettings, type SettingKey } from './served-annotations.ts';

/** Annotations of a Service that the controller writes. */
export const WRITTEN_ANNOTATIONS: readonly WrittenRow[] = [
  {
    name: LOAD_BALANCER_ID_ANNOTATION,
    means: 'the id of the load balancer',
    form: '`lb-…`',
    outcome: 'written',
  },
  {
    name: SERVICE_ANNOTATION.address,
    means: 'the address or the domain of the load balancer, where the status of Services may not be written, too',
    form: 'an address or a domain',
    outcome: 'written',
  },
  {
    name: SERVICE_ANNOTATION.record,
    means:
      'how the load balancer was made, whether a security group for source ranges was begun, and while nothing changes a hash of what is in force; without it, they are found by their tags',
    form: 'JSON',
    outcome: 'written',
  },
];

/** What the annotations and labels of a Service say. */
type ReadAnnotations = {
  readonly settings: ServiceSettings;
  readonly notices: readonly Notice[];
  /** Whether what the targets depend on can be read. */
  readonly areTargetsKnown: boolean;
};

type Texts = Readonly<Record<string, string>>;

/** Prefixes that belong to this subject alone: an unknown name with one of them is a spelling mistake. */
const OWN_PREFIXES = [
  'service.cloud.tencent.com/',
  'service.kubernetes.io/qcloud-',
  'service.kubernetes.io/tke-',
  'service.kubernetes.io/loadbalance',
  'service.kubernetes.io/service.',
  'kubernetes.io/service.internet',
  'service.beta.kubernetes.io/load-balancer-source',
];

const OF_TARGETS: readonly SettingKey[] = ['mode', 'directAccess', 'backendSelector', 'drainsLeaving', 'drainsUnready'];

/** Reads every annotation of a Service that is about its load balancer. What is not obeyed has a notice. */
export function readAnnotations(annotations: Texts, labels: Texts): ReadAnnotations {
  const settings: Record<string, unknown> = {};
  const notices: Notice[] = [];
  const invalid: string[] = [];
  for (const [key, row] of Object.entries<ServedRow<unknown>>(SERVED_ANNOTATIONS)) {
    const given = findGiven(row, annotations, labels);
    const [first] = given;
    if (first === undefined) continue;
    const other = given.find(({ text }) => text !== first.text);
    if (other !== undefined) {
      const message = `${other.place} contradicts ${first.place}: ${show(other.text)} and ${show(first.text)}; remove one of them`;
      notices.push(blocking('AnnotationInvalid', message));
      invalid.push(key);
      continue;
    }
    const parsed = row.parse(first.text);
    if (parsed.kind === 'value') settings[key] = parsed.value;
    else {
      const message = `${first.place} must be ${parsed.expected}, not ${show(first.text)}; ${row.cure}`;
      notices.push(blocking('AnnotationInvalid', message));
      invalid.push(key);
    }
  }
  // Each value is the one that the row of its key parsed.
  return {
    settings: settings as ServiceSettings,
    notices: [...notices, ...refusals(annotations, labels)],
    areTargetsKnown: !OF_TARGETS.some((key) => invalid.includes(key)),
  };
}

type Given = { readonly place: string; readonly text: string };

/** Where a setting is written, what counts first. */
function findGiven(
  { name, olderNames = [], isLabelToo }: ServedRow<unknown>,
  annotations: Texts,
  labels: Texts,
): readonly Given[] {
  const names = [name, ...olderNames];
  return [
    ...names.flatMap((one) => given('annotation', one, annotations)),
    ...(isLabelToo ? names.flatMap((one) => given('label', one, labels)) : []),
  ];
}

function given(kind: 'annotation' | 'label', name: string, texts: Texts): readonly Given[] {
  const text = Object.hasOwn(texts, name) ? texts[name] : undefined;
  return text === undefined ? [] : [{ place: `${kind} ${name}`, text }];
}

function refusals(annotations: Texts, labels: Texts): readonly Notice[] {
  const rows = REFUSED_ANNOTATIONS.filter(({ place }) => place === 'Service');
  const refused = rows.flatMap(({ name, why, instead, neutral, blocks }) =>
    given('annotation', name, annotations).flatMap(({ place, text }): readonly Notice[] => {
      if (neutral.includes(text)) return [];
      const message = `${place}: ${show(text)} is not served: ${why}; ${instead}`;
      return [{ reason: 'AnnotationRefused', message, blocks }];
    }),
  );
  const served = Object.values<ServedRow<unknown>>(SERVED_ANNOTATIONS);
  const asLabels = served.flatMap(({ name, olderNames = [], isLabelToo }) => (isLabelToo ? [name, ...olderNames] : []));
  const known = new Set([
    ...rows.map(({ name }) => name),
    ...served.flatMap(({ name, olderNames = [] }) => [name, ...olderNames]),
    ...WRITTEN_ANNOTATIONS.map(({ name }) => name),
  ]);
  return [...refused, ...unknownOf('annotation', annotations, known), ...unknownOf('label', labels, new Set(asLabels))];
}

function unknownOf(kind: 'annotation' | 'label', texts: Texts, known: ReadonlySet<string>): readonly Notice[] {
  return Object.keys(texts)
    .filter((name) => !known.has(name) && OWN_PREFIXES.some((prefix) => name.startsWith(prefix)))
    .map((name) => {
      const message = `${kind} ${show(name)} has no meaning here; docs/reference/service-annotations.md has all that have one`;
      return { reason: 'AnnotationRefused', message, blocks: false };
    });
}

function show(text: string): string {
  return describeValue(text);
}
