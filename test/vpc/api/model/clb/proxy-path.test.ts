import test from 'ava';
import { CertificateBook, type ModelCertificate } from '../../../../../sim/vpc/api/model/certificate-book.ts';
import { hasProxy, proxyTable } from '../../../../../sim/vpc/api/model/clb/proxy-path.ts';
import type { ModelListener, ModelLoadBalancer, ModelRule } from '../../../../../sim/vpc/api/model/clb/types.ts';
import { SecurityGroupBook } from '../../../../../sim/vpc/api/model/security-group-book.ts';
import { NO_CHECK } from '../../../clb/proxy-scene.ts';

const VIP = '10.0.8.10';
const CERTIFICATE: ModelCertificate = {
  ...{ certId: 'cert-a', alias: '', chain: 'CHAIN', key: 'KEY', domain: 'a.example', altNames: [] },
  ...{ algorithm: 'RSA 2048', notBeforeMs: 0, notAfterMs: 1, tags: {}, insertedAtMs: 0 },
  type: 'SVR',
};

function rule(ruleId: string, more: Partial<ModelRule> = {}): ModelRule {
  return {
    ...{ ruleId, domain: 'a.example', url: '/', scheduler: 'WRR', sessionExpireTime: 0, forwardType: 'HTTP' },
    ...{ healthCheck: NO_CHECK, createdAtMs: 0, targets: new Map() },
    ...more,
  };
}

function listener(protocol: 'HTTP' | 'HTTPS', port: number, rules: readonly ModelRule[], isSni = false): ModelListener {
  return {
    ...{ listenerId: `lbl-${port}`, name: '', protocol, port, scheduler: 'WRR', sessionExpireTime: 0 },
    ...{ deregisterTargetRst: false, createdAtMs: 0, targets: new Map() },
    layer7: {
      rules: new Map(rules.map((one) => [one.ruleId, one])),
      isSni,
      domains: new Map(isSni ? [['a.example', { certIds: ['cert-a'] }]] : []),
      defaultDomain: 'a.example',
    },
  };
}

function balancer(...listeners: readonly ModelListener[]): ModelLoadBalancer {
  return {
    ...{ loadBalancerId: 'lb-a', name: '', type: 'INTERNAL', vpcId: 'vpc-a', vip: VIP, domain: '', tags: {} },
    ...{ securityGroupIds: [], isDeleteProtected: false, passToTarget: true, snatPro: false, extras: {} },
    ...{ state: 'NORMAL', isOperating: false, createdAtMs: 0 },
    listeners: new Map(listeners.map((one) => [one.listenerId, one])),
  };
}

function tableOf(one: ModelLoadBalancer) {
  const certificates = new CertificateBook();
  certificates.put(CERTIFICATE);
  return proxyTable(one, new SecurityGroupBook([]), certificates);
}

test('proxyTable: a rule of the address has no domain, and one of the default domain says so', (t) => {
  const table = tableOf(balancer(listener('HTTP', 80, [rule('loc-1', { domain: VIP }), rule('loc-2')])));
  t.true(table.passes);
  t.deepEqual(
    table.listeners[0]?.rules.map(({ domain, isDefault }) => [domain, isDefault]),
    [
      ['', undefined],
      ['a.example', true],
    ],
  );
});

test('proxyTable: a certificate is shown for its domain, and by default', (t) => {
  const [https] = tableOf(balancer(listener('HTTPS', 443, [rule('loc-1')], true))).listeners;
  const shown = { cert: 'CHAIN', key: 'KEY' };
  t.deepEqual([https?.defaultCertificate, https?.certificates], [shown, { 'a.example': shown }]);
});

test('proxyTable: a redirect leads to protocol, port and domain of its rule, with the path of the request or its own', (t) => {
  const to = (takesUrl: boolean) => ({ listenerId: 'lbl-443', ruleId: 'loc-2', code: 301 as const, takesUrl });
  const https = listener('HTTPS', 443, [rule('loc-2', { url: '/b' })], true);
  const redirects = [true, false].map((takesUrl) => {
    const http = listener('HTTP', 80, [rule('loc-1', { rewriteTo: to(takesUrl) })]);
    return tableOf(balancer(http, https)).listeners[0]?.rules[0]?.redirect;
  });
  const place = { code: 301, protocol: 'HTTPS', port: 443, domain: 'a.example' } as const;
  t.deepEqual(redirects, [place, { ...place, url: '/b' }]);
});

test('proxyTable: listeners of layer 4 have no proxy', (t) => {
  const { layer7: _, ...tcp } = listener('HTTP', 80, []);
  const one = balancer({ ...tcp, protocol: 'TCP' });
  t.false(hasProxy(one));
  t.deepEqual(tableOf(one).listeners, []);
  t.true(hasProxy(balancer(listener('HTTP', 80, []))));
});
