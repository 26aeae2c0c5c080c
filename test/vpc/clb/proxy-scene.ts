import type { ExecutionContext } from 'ava';
import type { ProxyListener, ProxyRule, ProxyTable } from '../../../sim/vpc/api/model/clb/proxy-table.ts';
import type { ListenerPath } from '../../../sim/vpc/api/model/clb/types.ts';
import { Peer } from '../../../sim/vpc/clb/peer.ts';
import { createTestVpc, type TestVpc } from '../../../sim/vpc/vpc.ts';

const SUBNET = { id: 'subnet-nodes000', cidr: '10.80.0.0/24' };

/** The VIP of the load balancer of the scene. */
export const VIP = '10.80.0.200';
/** Where its targets listen. */
const TARGET_PORT = 8080;

/** A health check that is off. */
export const NO_CHECK: ListenerPath['healthCheck'] = {
  ...{ HealthSwitch: 0, TimeOut: 2, IntervalTime: 5, HealthNum: 2, UnHealthNum: 2, HttpCode: 31, HttpCheckPath: '/' },
  ...{ HttpCheckDomain: '', HttpCheckMethod: 'GET', HttpVersion: 'HTTP/1.1', CheckPort: -1, ContextType: '' },
  ...{ SendContext: '', RecvContext: '', CheckType: 'HTTP', SourceIpType: 1 },
};

/** A load balancer of layer 7 before two targets, and a client. */
type ProxyScene = {
  readonly vpc: TestVpc;
  readonly clientIp: string;
  /** Peers that serve HTTP. */
  readonly targets: { readonly a: Peer; readonly b: Peer };
  readonly ips: { readonly a: string; readonly b: string };
  set(listeners: readonly ProxyListener[], more?: Partial<ProxyTable>): Promise<void>;
  /** What curl prints at the client. */
  curl(...args: readonly string[]): Promise<string>;
};

/** Makes the scene; it ends with the test. */
export async function proxyScene(t: ExecutionContext): Promise<ProxyScene> {
  const nodes = ['a', 'b', 'client'].map((name) => ({ name, primarySubnet: SUBNET.id }));
  const vpc = await createTestVpc({ vpcCidrs: ['10.80.0.0/16'], subnets: [SUBNET], nodes });
  t.teardown(() => vpc.close());
  const serve = async (name: 'a' | 'b'): Promise<Peer> => {
    const peer = new Peer(vpc.node(name).netns, name);
    t.teardown(() => peer.close());
    await peer.text({ do: 'listen', port: TARGET_PORT, protocol: 'http' });
    return peer;
  };
  const [a, b] = await Promise.all([serve('a'), serve('b')]);
  const options = ['--silent', '--max-time', '10'];
  return {
    vpc,
    clientIp: vpc.node('client').primary.primaryIp,
    targets: { a, b },
    ips: { a: vpc.node('a').primary.primaryIp, b: vpc.node('b').primary.primaryIp },
    set: (listeners, more) => vpc.loadBalancing.setProxy({ loadBalancerId: 'lb-proxy', vip: VIP, listeners, ...more }),
    curl: async (...args) => (await vpc.node('client').netns.tryRun(['curl', ...options, ...args])).stdout.trim(),
  };
}

/** A rule of the VIP for all paths, without checks. */
export function ruleOf(targets: ProxyRule['targets'], more: Partial<ProxyRule> = {}): ProxyRule {
  return { ruleId: 'loc-00000001', domain: '', url: '/', healthCheck: NO_CHECK, targets, ...more };
}

/** A target of the scene. */
export function targetOf(ip: string, weight = 10): ProxyRule['targets'][number] {
  return { ip, port: TARGET_PORT, weight };
}
