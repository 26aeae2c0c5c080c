import { isIP } from 'node:net';
import type { NetnsView } from '../../../sim/support/netns.ts';
import { at } from '../../kube-api/contract/contract-case.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { POD_SUBNET } from '../../system/vpc-cloud.ts';
import { tellOurPods } from '../deploy.ts';
import type { RealCluster } from '../real-cluster.ts';

/** Annotations of a Service whose load balancer has an address of the default subnet and leads to Nodes. */
export const INTERNAL = { 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': POD_SUBNET.subnetId } as const;
/** The same, and it leads to Pods. */
export const DIRECT = { ...INTERNAL, 'service.cloud.tencent.com/direct-access': 'true' } as const;

/** A Service of type LoadBalancer, by what tests change of it. */
type BalancedService = {
  readonly name: string;
  readonly selector: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Fields that win over one port 80 of TCP. */
  readonly spec?: object;
};

/** Makes the manifest of a Service of type LoadBalancer. */
export function balancedService({ name, selector, annotations, spec = {} }: BalancedService): string {
  return JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, annotations } },
    spec: { type: 'LoadBalancer', selector, ports: [{ port: 80 }], ...spec },
  });
}

/** Waits until a Service has an address and a host gets a page by it; answers with it. @throws Error with what our Pods say */
export async function awaitBalanced(cluster: RealCluster, name: string, from: NetnsView): Promise<string> {
  const explained = async (error: Error): Promise<never> => {
    const service = await cluster.kubectl('get', 'service', name, '-o', 'yaml').catch(String);
    throw new Error(`${error.message}\n${targetsOf(cluster).join('\n')}\n${service}\n${await tellOurPods(cluster)}`);
  };
  const look = async (): Promise<string | undefined> => {
    const service = await cluster.kubectlJson('get', 'service', name);
    const ip = String(at(service, 'status', 'loadBalancer', 'ingress', 0, 'ip'));
    return isIP(ip) > 0 && (await tryPage(from, ip)) !== undefined ? ip : undefined;
  };
  return waitUntil(look, { what: `a page of ${name}`, timeoutMs: 120_000, everyMs: 500 }).catch(explained);
}

/** Asks for a page by HTTP; undefined when there is none within five seconds. */
export async function tryPage(from: NetnsView, host: string): Promise<string | undefined> {
  const argv = ['curl', '--silent', '--show-error', '--max-time', '5', `http://${host}/`];
  const { code, stdout } = await from.tryRun(argv);
  return code === 0 ? stdout.trim() : undefined;
}

/** Clients of pages in the log of a Pod, each once, sorted. */
export async function clientsOf(cluster: RealCluster, pod: string): Promise<readonly string[]> {
  const lines = (await cluster.kubectl('logs', pod)).split('\n').filter((line) => line.includes('"GET '));
  return [...new Set(lines.map((line) => line.split(' ')[0] ?? ''))].toSorted();
}

/** Targets of all listeners of the cloud: `TCP/80 10.0.0.2:30080 10`, sorted. */
export function targetsOf({ cloud }: RealCluster): readonly string[] {
  const listeners = [...cloud.host.model.state.clb.balancers().values()].flatMap((one) => [...one.listeners.values()]);
  return listeners
    .flatMap(({ protocol, port, targets }) =>
      [...targets.values()].map((target) => `${protocol}/${port} ${target.ip}:${target.port} ${target.weight}`),
    )
    .toSorted();
}
