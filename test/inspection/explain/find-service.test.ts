import test from 'ava';
import { findService, type Service } from '../../../inspection/explain/find-service.ts';
import { serviceHop } from '../../../inspection/explain/service-hop.ts';
import { known } from '../../../inspection/node/known.ts';
import { nodeFixture } from '../../cli/commands/graph/node-fixture.ts';
import { kubeProxyObjects } from '../../support/kube-proxy/captured-rules.ts';

// The rules of kube-proxy since 1.36 in nftables mode; those before are in find-service.kernel.test.ts.

type Case = { readonly name: string; readonly ip: string; readonly expects: Partial<Service> | undefined };

const CASES: readonly Case[] = [
  {
    name: 'backends in the choice itself',
    ip: '10.96.0.1',
    expects: { backends: ['10.0.0.9', '172.31.1.2'], refusal: undefined },
  },
  {
    name: 'session affinity: a chain for each backend',
    ip: '10.96.0.3',
    expects: { backends: ['10.0.0.9', '172.31.1.2'], refusal: undefined },
  },
  { name: 'an external address', ip: '203.0.113.5', expects: { backends: ['10.0.0.9'], refusal: undefined } },
  { name: 'a Service without backends', ip: '10.96.0.4', expects: { backends: [], refusal: 'rejected' } },
  {
    name: 'internalTrafficPolicy Local, and its backends are elsewhere',
    ip: '10.96.0.6',
    expects: { backends: [], refusal: 'dropped' },
  },
  { name: 'the address of the node', ip: '10.0.0.2', expects: undefined },
  { name: 'a backend', ip: '172.31.1.2', expects: undefined },
];

for (const { name, ip, expects } of CASES) {
  test(`findService: kube-proxy 1.36, nftables mode: ${name}`, (t) => {
    const { host } = nodeFixture({ enis: 1, podsPerEni: 1 });
    const found = findService(
      { host: { ...host, nft: known({ objects: kubeProxyObjects(), ourTable: undefined }) } },
      ip,
    );
    t.deepEqual(
      found && { isKubeProxy: found.isKubeProxy, backends: found.backends, refusal: found.refusal },
      expects && { isKubeProxy: true, ...expects },
    );
  });
}

for (const [ip, says] of [
  ['10.96.0.4', /: it has no backends: packets are refused$/],
  ['10.96.0.6', /: it has no backends on this node, .*: packets are dropped$/],
] as const) {
  test(`serviceHop: says what becomes of packets to ${ip}, which has no backends`, (t) => {
    const service = serviceAt(ip);
    if (service === undefined) return t.fail('no Service');
    const { verdict, details } = serviceHop(service, 'the Pod', undefined);
    t.is(verdict, 'unknown');
    t.true(
      details.some((line) => says.test(line)),
      details.join('; '),
    );
  });
}

function serviceAt(ip: string): Service | undefined {
  const { host } = nodeFixture({ enis: 1, podsPerEni: 1 });
  const nft = known({ objects: kubeProxyObjects(), ourTable: undefined });
  return findService({ host: { ...host, nft } }, ip);
}
