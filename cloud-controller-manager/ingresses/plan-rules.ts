import type { RuleSettings } from '../../cloud/rules.ts';
import { describeValue } from '../../runtime/decode.ts';
import type { BackendPort } from '../backends/backend-port.ts';
import type { DesiredRule, DesiredRuleListener } from '../balancers/desired-rules.ts';
import type { DesiredTargets } from '../balancers/desired-targets.ts';
import { blocking, type Notice, remark } from '../balancers/notice.ts';
import type { OwnCertificate } from './own-certificate.ts';
import { type PlacedRule, placeRules } from './place-rules.ts';
import { type CertificatePlan, planCertificates, type SecretFacts } from './plan-certificates.ts';
import { type PlannedUrl, planRedirects, urlIdOf } from './plan-redirects.ts';
import type { IngressSpec, PathRule, RuleBackend } from './read-ingress.ts';
import type { IngressSettings } from './served-annotations.ts';
import { TargetWeigher } from './weigh-targets.ts';

/** What a plan is made of. */
type RuleFacts = {
  readonly spec: IngressSpec;
  readonly settings: IngressSettings;
  /** By name, in the namespace of the Ingress. */
  readonly secretOf: (name: string) => SecretFacts;
  /** The ports of a Service of the namespace. `unknown`: it is not known yet whether it is there. */
  readonly portsOf: (service: string) => readonly BackendPort[] | 'missing' | 'external' | 'unknown';
  /** The targets of a port of a Service. */
  readonly targetsOf: (service: string, port: BackendPort) => BackendTargets;
  /** The name of the Pod that has an address; absent: Nodes are the backends. */
  readonly podOf?: (ip: string) => string | undefined;
  readonly maxTargets?: number;
  /** Milliseconds since the epoch: certificates expire. */
  readonly nowMs: number;
};

/** The targets of a port, as `DesiredRule` has them. */
type BackendTargets = Pick<DesiredTargets, 'targets' | 'keptIps' | 'keepsNodes'>;

/** A plan. Without `desired` one of the notices blocks, and nothing is changed. */
type RulePlan = {
  readonly desired?: readonly DesiredRuleListener[];
  /** What its listeners would be, also without `desired`. */
  readonly listeners: readonly DesiredRuleListener[];
  /** Certificates that have to be uploaded, by hash. */
  readonly uploads: ReadonlyMap<string, OwnCertificate>;
  readonly notices: readonly Notice[];
};

/** Most paths in one message. */
const SHOWN = 3;
/** Every answer of HTTP counts: 1xx to 5xx. */
const ALL_CODES = 31;

/** Plans the listeners and rules of an Ingress. It depends on its arguments alone. */
export function planRules(facts: RuleFacts): RulePlan {
  const { spec, settings, secretOf, nowMs } = facts;
  const certificates = planCertificates({
    tls: spec.tls,
    ...(settings.certificates === undefined ? {} : { annotated: settings.certificates }),
    secretOf,
    nowMs,
  });
  const placed = placeRules(spec, settings, certificates);
  const { urls, notices } = planUrls(placed.rules, certificates);
  const { redirects, added, notices: ofRedirects } = planRedirects(urls, settings);
  const backends = planBackends(facts);
  const settingsOf = memoize(ruleSettingsOf);
  const rules = [...urls, ...added].map((one) => {
    const redirect = redirects.get(idOf(one));
    return {
      one,
      rule: {
        ...ruleOf(one, certificates, settingsOf),
        ...(redirect === undefined ? backends.of(one.rule) : { redirect }),
      },
    };
  });
  const listeners = listenersOf(rules);
  const all = [
    ...certificates.notices,
    ...certificates.noticesOfUnused([...placed.rules.map(({ host }) => host), ...spec.bareHosts]),
    ...placed.notices,
    ...notices,
    ...ofRedirects,
    ...backends.notices(),
    ...noticesOfUnserved(spec.unserved ?? []),
    ...(placed.rules.length === 0 && placed.notices.length === 0
      ? [
          blocking(
            'IngressInvalid',
            'the Ingress has neither rules nor a default backend that lead to a Service; add one',
          ),
        ]
      : []),
  ];
  const plan = { listeners, uploads: certificates.uploads, notices: all };
  return all.some(({ blocks }) => blocks) ? plan : { ...plan, desired: listeners };
}

/** A url of two rules is served for the one that asks for it itself, or else for the first one. */
function planUrls(
  rules: readonly PlacedRule[],
  { certificateOf }: Pick<CertificatePlan, 'certificateOf'>,
): { readonly urls: readonly PlannedUrl[]; readonly notices: readonly Notice[] } {
  const notices = new Map<string, Notice>();
  const urls = new Map<string, PlannedUrl>();
  const refusalOf = memoize((host) => ({ text: refuseHost(host) }));
  const note = (one: Notice): unknown => notices.set(one.message, one);
  for (const rule of rules) {
    const mapped = mapPath(rule);
    const refused = refusalOf(rule.host).text ?? (typeof mapped === 'string' ? mapped : undefined);
    if (refused !== undefined || typeof mapped === 'string') {
      note(remark('IngressRefused', `${refused}; that rule is not served`));
      continue;
    }
    if (rule.protocol === 'HTTPS' && certificateOf(rule.host) === undefined) {
      if (rule.isFallback !== true) note(lacking(rule.host));
      continue;
    }
    for (const url of mapped) {
      const id = idOf({ rule, url });
      const known = urls.get(id);
      if (known === undefined || (isDerived(known) && !isDerived({ rule, url }))) urls.set(id, { rule, url });
      else if (!isDerived({ rule, url }) && !isSame(known.rule.backend, rule.backend)) note(twice(rule));
    }
  }
  return { urls: [...urls.values()], notices: [...notices.values()] };
}

/** The exact url of a prefix is there beside that of what begins with it. */
function isDerived({ rule, url }: PlannedUrl): boolean {
  return rule.pathType === 'Prefix' && url.startsWith('=');
}

function isSame(one: RuleBackend, other: RuleBackend): boolean {
  return one.service === other.service && one.port === other.port;
}

function lacking(host: string): Notice {
  const name = host === '' ? 'a rule without a host is' : `host ${describeValue(host)} is`;
  const message = `${name} on HTTPS and has no certificate; add an entry for it to spec.tls, or one without hosts`;
  return remark('CertificateRefused', message);
}

function noticesOfUnserved(unserved: NonNullable<IngressSpec['unserved']>): readonly Notice[] {
  if (unserved.length === 0) return [];
  const shown = unserved
    .slice(0, SHOWN)
    .map(({ place, kind }) => `${place} (a resource of kind ${describeValue(kind)})`);
  const more = unserved.length > SHOWN ? ` and ${unserved.length - SHOWN} more` : '';
  const message = `only Services are backends of a load balancer; not served: ${shown.join(', ')}${more}. All others are served. Name a Service there`;
  return [remark('IngressRefused', message)];
}

function twice({ protocol, port, host, path }: PlacedRule): Notice {
  const message = `${protocol}:${port} ${describeValue(host)} ${describeValue(path)} is there twice, with different backends; the first one is served; remove the other`;
  return remark('IngressInvalid', message);
}

function ruleOf(
  { rule, url }: PlannedUrl,
  { certificateOf }: Pick<CertificatePlan, 'certificateOf'>,
  settingsOf: (host: string) => RuleSettings,
): DesiredRule {
  const certificate = rule.protocol === 'HTTPS' ? certificateOf(rule.host) : undefined;
  return {
    domain: rule.host,
    url,
    ...(rule.host === '' ? { isDefault: true } : {}),
    ...(certificate === undefined ? {} : { certificate }),
    settings: settingsOf(rule.host),
  };
}

function ruleSettingsOf(host: string): RuleSettings {
  const domain = host.startsWith('*.') ? { domain: host.replace('*', 'check') } : {};
  return {
    scheduler: 'WRR',
    sessionSeconds: 0,
    healthCheck: { isOn: true, kind: 'HTTP', http: { path: '/', method: 'HEAD', codes: ALL_CODES, ...domain } },
    forwardType: 'HTTP',
  };
}

/** Computes a value of each text once: an Ingress has thousands of rules, and few hosts. */
function memoize<T>(make: (text: string) => T): (text: string) => T {
  const made = new Map<string, T>();
  return (text) => {
    const value = made.get(text) ?? make(text);
    made.set(text, value);
    return value;
  };
}

/** Finds the targets of rules, and collects what is missing. */
function planBackends({ portsOf, targetsOf, settings, podOf = () => undefined, maxTargets }: RuleFacts): {
  readonly of: (rule: PlacedRule) => BackendTargets & Pick<DesiredRule, 'maxTargets'>;
  readonly notices: () => readonly Notice[];
} {
  const missing = new Set<string>();
  const byBackend = new Map<string, BackendTargets>();
  const weigher = settings.weights === undefined ? undefined : new TargetWeigher(settings.weights, podOf);
  return { of, notices: () => [...missing].map((message) => remark('BackendMissing', message)) };

  function of(rule: PlacedRule): BackendTargets & Pick<DesiredRule, 'maxTargets'> {
    const { service, port } = rule.backend;
    const id = `${typeof port} ${port} ${service}`;
    const planned = byBackend.get(id) ?? find(rule.backend);
    byBackend.set(id, planned);
    const { targets } = planned;
    return {
      ...planned,
      ...(targets === undefined ? {} : { targets: weigher?.weigh(targets, rule) ?? targets }),
      ...(maxTargets === undefined ? {} : { maxTargets }),
    };
  }

  function find({ service, port }: RuleBackend): BackendTargets {
    const ports = portsOf(service);
    const name = `Service ${describeValue(service)}`;
    if (ports === 'unknown') return {};
    if (ports === 'missing') {
      missing.add(`${name} does not exist; its rules have no backends; make it, or name another`);
      // Its Pods may be gone, and their addresses of others.
      return { targets: [] };
    }
    if (ports === 'external') {
      missing.add(
        `${name} is of type ExternalName: a load balancer leads to Pods and Nodes of the cluster alone, so its rules have no backends; name a Service with a selector, or lead clients there by DNS`,
      );
      return { targets: [] };
    }
    const its = ports.find((one) => (typeof port === 'number' ? one.port === port : one.name === port));
    const place = `port ${describeValue(port)} of ${name}`;
    if (its === undefined)
      missing.add(`${place} does not exist; the backends of its rules stay as they are; correct one of them`);
    else if (its.protocol !== 'TCP') missing.add(`${place} is of ${its.protocol}, and HTTP needs TCP; name another`);
    else if (settings.directAccess !== true && its.nodePort === undefined)
      missing.add(
        `${place} has no node port, and Nodes are the backends; make the Service of type NodePort, or let Pods be the backends by ingress.cloud.tencent.com/direct-access`,
      );
    else return targetsOf(service, its);
    return {};
  }
}

function listenersOf(
  rules: readonly { readonly one: PlannedUrl; readonly rule: DesiredRule }[],
): readonly DesiredRuleListener[] {
  const byPort = Map.groupBy(rules, ({ one }) => one.rule.port);
  return [...byPort]
    .toSorted(([one], [other]) => one - other)
    .flatMap(([port, its]) => {
      const protocol = its[0]?.one.rule.protocol ?? 'HTTP';
      return [{ protocol, port, rules: its.map(({ rule }) => rule) }];
    });
}

function idOf({ rule: { protocol, port, host }, url }: PlannedUrl): string {
  return urlIdOf(protocol, port, host, url);
}

/** Most characters of a path. */
const MAX_PATH = 120;
const MAX_HOST = 80;
const PATH = /^\/[A-Za-z0-9._\-/=?&#%]*$/;
const HOST = /^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/**
 * Returns the urls of a load balancer that serve a path, or a text for why none can. `=/a` is served for /a alone, `/a/` for
 * what begins with it. `Prefix` is by elements of the path, and a url is by characters: `/a` needs both.
 * @see cloud.tencent.com/document/product/214/9032
 */
function mapPath({ path, pathType }: Pick<PathRule, 'path' | 'pathType'>): readonly string[] | string {
  const place = `path ${describeValue(path)}`;
  if (!path.startsWith('/')) return `${place} must begin with /`;
  if (path.length > MAX_PATH) return `${place} has ${path.length} characters, and may have ${MAX_PATH}`;
  if (!PATH.test(path))
    return `${place} has characters that a url of a load balancer cannot have: it takes letters, digits and . _ - / = ? & # %`;
  if (pathType === 'Exact') return [`=${path}`];
  if (pathType === 'ImplementationSpecific') return [path];
  const bare = path.replace(/\/+$/, '');
  return bare === '' ? ['/'] : [`=${bare}`, `${bare}/`];
}

/** Returns why a load balancer cannot have a host as its domain, or undefined. */
function refuseHost(host: string): string | undefined {
  if (host === '') return undefined;
  if (host.length > MAX_HOST)
    return `host ${describeValue(host)} has ${host.length} characters, and may have ${MAX_HOST}`;
  if (!HOST.test(host)) return `host ${describeValue(host)} must be a name such as www.example.com or *.example.com`;
  return undefined;
}
