import { isObject } from '../../../sim/support/netns.ts';
import { readFaultScene } from './fault-scene.ts';
import type { ForeignScene } from './foreign-faults.ts';
import type { AttachedPod } from './scene-node.ts';
import type { Trial } from './trial.ts';

/** Looks at a dual-stack node whose network is as it should be. @throws Error when it is not */
export async function readForeignScene(trial: Trial, pod: AttachedPod): Promise<ForeignScene> {
  const scene = await readFaultScene(trial, pod);
  const { netns } = trial.node;
  const gatewayOf = async (family: string): Promise<string> => {
    const [route] = await netns.ipJson(family, 'route', 'show', 'table', scene.table, 'default');
    return String(route?.['gateway']);
  };
  const [address] = await netns.ipJson('-4', 'address', 'show', 'dev', 'eth0');
  const [info]: readonly unknown[] = Array.isArray(address?.['addr_info']) ? address['addr_info'] : [];
  return {
    ...scene,
    ip6: pod.ips.find((ip) => ip.includes(':')) ?? '',
    nodeIp: isObject(info) ? String(info['local']) : '',
    gateway: await gatewayOf('-4'),
    gateway6: await gatewayOf('-6'),
  };
}
