import { buildIngressPlans, type IngressLbPlan } from '../../../../cli/commands/lb/build-ingress-plan.ts';
import { buildLbPlans, type LbPlan } from '../../../../cli/commands/lb/build-lb-plan.ts';
import type { LbFacts } from '../../../../cli/commands/lb/lb-facts.ts';
import { readLbFacts } from '../../../../cli/commands/lb/read-lb-facts.ts';
import type { CallContext } from '../../../../cloud/cloud.ts';
import { CLUSTER, type ServiceWorld } from '../../../cloud-controller-manager/services/service-world.ts';

/** Calls of a person. */
export const PERSON: CallContext = { priority: 'warm', owner: 'person', signal: new AbortController().signal };
const ARGS = {
  output: 'table',
  plan: false,
  'load-balancer-class': '',
  'cluster-id': undefined,
  'vpc-id': undefined,
  region: undefined,
  endpoint: undefined,
  what: undefined,
  from: undefined,
} as const;

/** Reads what `tke-eni lb` reads, of a world in this process. @param more `plan`: with --plan */
export async function readLb(
  world: ServiceWorld,
  what?: string,
  more: { readonly plan?: boolean; readonly client?: Parameters<typeof readLbFacts>[1]['client'] } = {},
): Promise<LbFacts> {
  const { clock, admin } = world.world.scene;
  const openCloud = async () => ({
    read: async <T>(query: (cloud: ServiceWorld['cloud'], call: CallContext) => Promise<T>) =>
      await query(world.cloud, PERSON),
  });
  const progress = { show: () => undefined };
  const { plan = false, client = admin } = more;
  return await clock.run(readLbFacts({ ...ARGS, what, plan }, { client, openCloud, signal: PERSON.signal, progress }));
}

/** Plans as `tke-eni lb --plan` does. */
export function plansOf(facts: LbFacts): readonly LbPlan[] {
  if (facts.cloud.kind === 'unknown' || facts.vpcId === undefined) throw new Error('not read');
  return buildLbPlans(facts, { cloud: facts.cloud.value, clusterId: facts.clusterId ?? CLUSTER, vpcId: facts.vpcId });
}

/** Plans Ingresses as `tke-eni lb --plan` does. */
export function ingressPlansOf(facts: LbFacts): readonly IngressLbPlan[] {
  if (facts.cloud.kind === 'unknown' || facts.vpcId === undefined) throw new Error('not read');
  const terms = { cloud: facts.cloud.value, clusterId: facts.clusterId ?? CLUSTER, vpcId: facts.vpcId };
  return buildIngressPlans(facts, terms);
}
