import { blocking, type Notice, remark } from '../balancers/notice.ts';
import type { CertificatePlan } from './plan-certificates.ts';
import type { IngressSpec, PathRule, RuleBackend } from './read-ingress.ts';
import { LISTEN_PORTS, type MixedRule } from './rule-annotations.ts';
import type { IngressSettings } from './served-annotations.ts';

/** A rule on a listener. */
export type PlacedRule = PathRule & {
  readonly protocol: 'HTTP' | 'HTTPS';
  readonly port: number;
  readonly rewrite?: MixedRule['rewrite'];
  /** Whether it is there for the default backend: a rule of the spec for every path has precedence. */
  readonly isFallback?: true;
};

type PlacementSettings = Pick<
  IngressSettings,
  'ruleMix' | 'httpRules' | 'httpsRules' | 'ruleMixBoth' | 'listenPorts' | 'rewriteSupport' | 'autoRewrite'
>;
type Unplaced = Omit<PlacedRule, 'port'>;

const HTTP_PORT = 80;

/** Decides which rules are on which listeners. */
export function placeRules(
  spec: IngressSpec,
  settings: PlacementSettings,
  certificates: Pick<CertificatePlan, 'certificateOf'>,
): { readonly rules: readonly PlacedRule[]; readonly notices: readonly Notice[] } {
  const notices = [...contradictions(settings)];
  const unplaced = protocolsOf(spec, settings, certificates);
  notices.push(...refuseChallenges(unplaced, settings));
  const ports = settings.listenPorts ?? LISTEN_PORTS;
  for (const protocol of ['HTTP', 'HTTPS'] as const) {
    if (ports[protocol].length > 0 || !unplaced.some((rule) => rule.protocol === protocol)) continue;
    const message = `rules are on ${protocol}, and the annotation ingress.cloud.tencent.com/listen-ports has no port of ${protocol}; add one`;
    notices.push(blocking('AnnotationInvalid', message));
  }
  const placed = unplaced.flatMap((rule) => ports[rule.protocol].map((port) => ({ ...rule, port })));
  return { rules: withFallbacks(placed, spec), notices };
}

/** Whether an authority asks for a path by HTTP before it issues the certificate of a host. @see RFC 8555, section 8.3 */
function isChallenge({ path }: Pick<PathRule, 'path'>): boolean {
  return path.startsWith('/.well-known/acme-challenge/');
}

function refuseChallenges(
  rules: readonly Unplaced[],
  { listenPorts = LISTEN_PORTS }: PlacementSettings,
): readonly Notice[] {
  if (listenPorts.HTTP.includes(HTTP_PORT) || !rules.some(isChallenge)) return [];
  const message =
    'paths of /.well-known/acme-challenge/ are asked for by HTTP on port 80, and the annotation ingress.cloud.tencent.com/listen-ports has no {"HTTP":80}; add it, or no certificate is issued';
  return [remark('AnnotationRefused', message)];
}

function contradictions(settings: PlacementSettings): readonly Notice[] {
  const { ruleMix, ruleMixBoth, autoRewrite, rewriteSupport, httpRules, httpsRules } = settings;
  const notices: Notice[] = [];
  const others = { 'rule-mix': ruleMix, 'auto-rewrite': autoRewrite, 'rewrite-support': rewriteSupport };
  const both = Object.entries(others).flatMap(([name, isOn]) => (isOn === true ? [name] : []));
  if (ruleMixBoth === true && both.length > 0)
    notices.push(
      blocking('AnnotationInvalid', `annotations: rule-mix-both is not together with ${both.join(', ')}; remove one`),
    );
  if (ruleMix !== true && (httpRules !== undefined || httpsRules !== undefined))
    notices.push(
      remark('AnnotationRefused', 'annotations: http-rules and https-rules have no effect without rule-mix "true"'),
    );
  return notices;
}

function protocolsOf(
  spec: IngressSpec,
  { ruleMix, ruleMixBoth, httpRules = [], httpsRules = [], listenPorts = LISTEN_PORTS }: PlacementSettings,
  { certificateOf }: Pick<CertificatePlan, 'certificateOf'>,
): readonly Unplaced[] {
  const rules = [...spec.rules, ...rulesOfDefault(spec)];
  if (ruleMixBoth === true) {
    return rules.flatMap((rule): readonly Unplaced[] => [
      { ...rule, protocol: 'HTTP' },
      { ...rule, protocol: 'HTTPS' },
    ]);
  }
  // A new host has no certificate before it was asked for by HTTP.
  const isPlain = (rule: PathRule): boolean => isChallenge(rule) && listenPorts.HTTP.length > 0;
  const byCertificate = (rule: Omit<Unplaced, 'protocol'>): Unplaced => ({
    ...rule,
    protocol: isPlain(rule) || certificateOf(rule.host) === undefined ? 'HTTP' : 'HTTPS',
  });
  if (ruleMix !== true) return rules.map(byCertificate);
  const named = new Set([...httpRules, ...httpsRules].map(idOf));
  const typeOf = new Map(spec.rules.map((rule) => [idOf(rule), rule.pathType]));
  const mixed = (protocol: 'HTTP' | 'HTTPS', all: readonly MixedRule[]): readonly Unplaced[] =>
    all.map((rule) => {
      const pathType = rule.pathType ?? typeOf.get(idOf(rule)) ?? 'ImplementationSpecific';
      return { ...rule, pathType, protocol };
    });
  const rest = spec.rules.filter((rule) => !named.has(idOf(rule)));
  return [
    ...mixed('HTTP', httpRules),
    ...mixed('HTTPS', httpsRules),
    ...rest.map((rule): Unplaced => ({ ...rule, protocol: isPlain(rule) ? 'HTTP' : 'HTTPS' })),
    ...rulesOfDefault(spec).map(byCertificate),
  ];
}

function rulesOfDefault({ defaultBackend, bareHosts }: IngressSpec): readonly Omit<Unplaced, 'protocol'>[] {
  if (defaultBackend === undefined) return [];
  return [...new Set(['', ...bareHosts])].map((host) => fallbackOf(host, defaultBackend));
}

function fallbackOf(host: string, backend: RuleBackend) {
  return { host, path: '/', pathType: 'Prefix', backend, isFallback: true } as const;
}

/** A host sends what it has no rule for to the default backend. */
function withFallbacks(placed: readonly PlacedRule[], { defaultBackend }: IngressSpec): readonly PlacedRule[] {
  if (defaultBackend === undefined) return placed;
  const byDomain = Map.groupBy(placed, ({ protocol, port, host }) => `${protocol}:${port} ${host}`);
  return [...byDomain.values()].flatMap((rules): readonly PlacedRule[] => {
    const own = rules.filter(({ isFallback }) => isFallback !== true);
    const [first] = rules;
    // What is there for challenges alone is served by HTTPS, or not at all.
    const isServed = own.length === 0 || own.some((rule) => !isChallenge(rule));
    if (first === undefined || !isServed || own.some(({ path, pathType }) => path === '/' && pathType !== 'Exact'))
      return own;
    const { protocol, port, host } = first;
    return [...own, { protocol, port, ...fallbackOf(host, defaultBackend) }];
  });
}

function idOf({ host, path }: { readonly host: string; readonly path: string }): string {
  return `${host} ${path}`;
}
