import type { CertificateBook } from '../certificate-book.ts';
import type { SecurityGroupBook } from '../security-group-book.ts';
import { admissionOf } from './listener-path.ts';
import type { ProxyCertificate, ProxyListener, ProxyRedirect, ProxyRule, ProxyTable } from './proxy-table.ts';
import { allRules } from './redirects.ts';
import type { ModelCertificates, ModelLayer7, ModelListener, ModelLoadBalancer, ModelRule } from './types.ts';

/** What a load balancer does at layer 7, as its proxy needs it; without listeners of HTTP and HTTPS an empty table. */
export function proxyTable(
  balancer: ModelLoadBalancer,
  groups: SecurityGroupBook,
  certificates: CertificateBook,
): ProxyTable {
  const { loadBalancerId, vip, passToTarget, listeners } = balancer;
  return {
    loadBalancerId,
    vip,
    ...(passToTarget ? { passes: true } : {}),
    listeners: [...listeners.values()].flatMap((listener) =>
      listener.layer7 === undefined ? [] : [proxyListener(balancer, listener, listener.layer7, groups, certificates)],
    ),
  };
}

/** Reports whether a load balancer has a listener of HTTP or HTTPS. */
export function hasProxy({ listeners }: ModelLoadBalancer): boolean {
  return [...listeners.values()].some(({ layer7 }) => layer7 !== undefined);
}

function proxyListener(
  balancer: ModelLoadBalancer,
  { listenerId, protocol, port }: ModelListener,
  { rules, certificates: own, domains, defaultDomain = '' }: ModelLayer7,
  groups: SecurityGroupBook,
  certificates: CertificateBook,
): ProxyListener {
  const admission = admissionOf(balancer, 'TCP', port, groups);
  const byDomain = [...domains].flatMap(([domain, one]) => {
    const found = certificateOf(one, certificates);
    return found === undefined ? [] : [[domain === balancer.vip ? '' : domain, found] as const];
  });
  // With SNI the default domain's is shown to a client that names no other one.
  const first = certificateOf(own ?? domains.get(defaultDomain), certificates);
  return {
    listenerId,
    protocol: protocol === 'HTTPS' ? 'HTTPS' : 'HTTP',
    port,
    ...(admission === undefined ? {} : { admission }),
    ...(first === undefined ? {} : { defaultCertificate: first }),
    ...(byDomain.length === 0 ? {} : { certificates: Object.fromEntries(byDomain) }),
    rules: [...rules.values()].map((rule) => proxyRule(balancer, rule, rule.domain === defaultDomain)),
  };
}

function proxyRule(balancer: ModelLoadBalancer, rule: ModelRule, isDefault: boolean): ProxyRule {
  const { ruleId, domain, url, healthCheck, targets, scheduler, sessionExpireTime } = rule;
  const redirect = redirectOf(balancer, rule);
  return {
    ruleId,
    domain: domain === balancer.vip ? '' : domain,
    url,
    ...(isDefault ? { isDefault } : {}),
    healthCheck,
    targets: [...targets.values()].map(({ ip, port, weight }) => ({ ip, port, weight })),
    ...(sessionExpireTime > 0 || scheduler === 'IP_HASH' ? { isSticky: true } : {}),
    ...(redirect === undefined ? {} : { redirect }),
  };
}

function redirectOf(balancer: ModelLoadBalancer, { rewriteTo }: ModelRule): ProxyRedirect | undefined {
  const listener = balancer.listeners.get(rewriteTo?.listenerId ?? '');
  const target = allRules(balancer).find(({ ruleId }) => ruleId === rewriteTo?.ruleId);
  if (rewriteTo === undefined || listener === undefined || target === undefined) return undefined;
  const { code, takesUrl } = rewriteTo;
  return {
    code,
    protocol: listener.protocol === 'HTTPS' ? 'HTTPS' : 'HTTP',
    port: listener.port,
    domain: target.domain === balancer.vip ? '' : target.domain,
    ...(takesUrl ? {} : { url: target.url }),
  };
}

/** Of several algorithms the first is shown. */
function certificateOf(ids: ModelCertificates | undefined, book: CertificateBook): ProxyCertificate | undefined {
  const all = new Map(book.all().map((one) => [one.certId, one]));
  const found = all.get(ids?.certIds[0] ?? '');
  if (found === undefined) return undefined;
  const { chain: cert, key } = found;
  const clientCa = all.get(ids?.caCertId ?? '')?.chain;
  return { cert, key, ...(clientCa === undefined ? {} : { clientCa }) };
}
