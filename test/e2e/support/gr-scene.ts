import { buildExecutables } from '../../../tools/build.ts';
import type { AttachedPod } from './scene-node.ts';
import { openTrial, type Trial } from './trial.ts';

/** The podCIDR of the node. */
const BLOCK = '172.20.0.0/26';
/** The first address of it. */
export const GATEWAY = '172.20.0.1';

/** A node whose agent was killed, with two GlobalRoute Pods, one of an ENI and one with an ENI of its own. */
export type GrScene = {
  readonly trial: Trial;
  readonly pods: Readonly<Record<'gr' | 'other' | 'eni' | 'own', AttachedPod>>;
};

/** Brings the node up; the VPC leads the block to it. The caller closes the trial. */
export async function openGrScene(ruleMode: 'compact' | 'per-pod', wiring: 'bridge' | 'routed'): Promise<GrScene> {
  await buildExecutables(['tke-eni']);
  const flags = { 'pod-cidr': BLOCK, 'gr-wiring': wiring };
  const trial = await openTrial({ ruleMode, directEnis: 1, hasRuntime: false, flags });
  try {
    const { vpc } = trial;
    await vpc.addGlobalRoute({ cidr: BLOCK, nodeIp: vpc.node('n1').primary.primaryIp });
    const eni = await trial.addPod({ name: 'eni' });
    await trial.agent.stop();
    await trial.startAgent({ flags: { 'default-network': 'tke-bridge' } });
    const [gr, other] = [await trial.addPod({ name: 'gr' }), await trial.addPod({ name: 'other' })];
    const plugin = 'tke-direct-eni';
    const own = await trial.node.addPod({ plugin, conf: trial.node.conf({ name: plugin, type: plugin }), name: 'own' });
    await trial.killAgent();
    return { trial, pods: { gr, other, eni, own } };
  } catch (error) {
    await trial.close();
    throw error;
  }
}
