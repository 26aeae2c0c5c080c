import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import { describeValue } from '../../runtime/decode.ts';
import { blocking, type Notice } from '../balancers/notice.ts';
import type { ServedRow, WrittenRow } from '../services/annotation-row.ts';
import { INGRESS_CLASS_ANNOTATION } from './decide-ingress.ts';
import { REFUSED_ANNOTATIONS } from './refused-annotations.ts';
import { type IngressSettings, SERVED_ANNOTATIONS } from './served-annotations.ts';

/** The product's annotation of an Ingress: the id of its load balancer. */
export const INGRESS_LOAD_BALANCER_ANNOTATION = 'kubernetes.io/ingress.qcloud-loadbalance-id';

/** Annotations of an Ingress that the controller writes. */
export const WRITTEN_ANNOTATIONS: readonly WrittenRow[] = [
  {
    name: INGRESS_LOAD_BALANCER_ANNOTATION,
    means: 'the id of the load balancer',
    form: '`lb-…`',
    outcome: 'written',
  },
  {
    name: SERVICE_ANNOTATION.address,
    means: 'the address or the domain of the load balancer, where the status of Ingresses may not be written, too',
    form: 'an address or a domain',
    outcome: 'written',
  },
  {
    name: SERVICE_ANNOTATION.record,
    means:
      'how the load balancer was made, and while nothing changes a hash of what is in force; without it, the load balancer is found by its tags',
    form: 'JSON',
    outcome: 'written',
  },
];

/** Prefixes that belong to this subject alone: an unknown name with one of them is a spelling mistake. */
const OWN_PREFIXES = ['ingress.cloud.tencent.com/', 'kubernetes.io/ingress.'];

const KNOWN = new Set([
  ...REFUSED_ANNOTATIONS.map(({ name }) => name),
  ...Object.values<ServedRow<unknown>>(SERVED_ANNOTATIONS).map(({ name }) => name),
  ...WRITTEN_ANNOTATIONS.map(({ name }) => name),
  INGRESS_CLASS_ANNOTATION,
]);

/** What the rules and their targets depend on. */
const OF_TARGETS: readonly (keyof IngressSettings)[] = [
  ...(['mode', 'directAccess', 'drainsLeaving', 'drainsUnready', 'weights'] as const),
  ...(['ruleMix', 'ruleMixBoth', 'httpRules', 'httpsRules', 'listenPorts'] as const),
];

/** What annotations say. */
type ReadAnnotations = {
  readonly settings: IngressSettings;
  readonly notices: readonly Notice[];
  /** Whether what the targets depend on can be read. */
  readonly areTargetsKnown: boolean;
};

/** What was read: annotations of an object never change, and all that depends on an Ingress asks for them. */
const READ = new WeakMap<Readonly<Record<string, string>>, ReadAnnotations>();

/** Reads every annotation of an Ingress that is about its load balancer. What is not obeyed has a notice. */
export function readAnnotations(annotations: Readonly<Record<string, string>>): ReadAnnotations {
  const read = READ.get(annotations) ?? parseAnnotations(annotations);
  READ.set(annotations, read);
  return read;
}

function parseAnnotations(annotations: Readonly<Record<string, string>>): ReadAnnotations {
  const settings: Record<string, unknown> = {};
  const notices: Notice[] = [];
  const invalid: string[] = [];
  for (const [key, { name, parse, cure }] of Object.entries<ServedRow<unknown>>(SERVED_ANNOTATIONS)) {
    const given = Object.hasOwn(annotations, name) ? annotations[name] : undefined;
    if (given === undefined) continue;
    const parsed = parse(given);
    if (parsed.kind === 'value') settings[key] = parsed.value;
    else {
      const message = `annotation ${name} must be ${parsed.expected}, not ${describeValue(given)}; ${cure}`;
      notices.push(blocking('AnnotationInvalid', message));
      invalid.push(key);
    }
  }
  for (const { name, neutral, why, instead, blocks } of REFUSED_ANNOTATIONS) {
    const given = Object.hasOwn(annotations, name) ? annotations[name] : undefined;
    if (given === undefined || neutral.includes(given)) continue;
    const message = `annotation ${name}: ${describeValue(given)} is not served: ${why}; ${instead}`;
    notices.push({ reason: 'AnnotationRefused', message, blocks });
  }
  for (const name of Object.keys(annotations)) {
    if (KNOWN.has(name) || !OWN_PREFIXES.some((prefix) => name.startsWith(prefix))) continue;
    const message = `annotation ${describeValue(name)} has no meaning here; docs/reference/ingress-annotations.md has all that have one`;
    notices.push({ reason: 'AnnotationRefused', message, blocks: false });
  }
  // Each value is the one that the row of its key parsed.
  return {
    settings: settings as IngressSettings,
    notices,
    areTargetsKnown: !OF_TARGETS.some((key) => invalid.includes(key)),
  };
}
