import type { BackendNode } from '../backends/decide-backend-node.ts';
import type { Notice } from '../balancers/notice.ts';
import { assumeTargets, MAX_TARGETS_OF_PLAN as most, refuseProducts } from '../balancers/plan-bound.ts';
import type { TargetPod } from '../balancers/plan-pod-targets.ts';
import type { ServiceSpec } from './read-service.ts';

/** What the size of a plan depends on. */
type SizeFacts = {
  readonly spec: Pick<ServiceSpec, 'ports' | 'sourceRanges'>;
  readonly settings: { readonly sourceRanges?: readonly string[] };
  readonly nodes: readonly BackendNode[];
  readonly pods?: Pick<TargetPod, 'slices'>;
  readonly maxTargets?: number;
};

/** Refuses a Service whose targets or source ranges are too many to be planned. It counts, and builds nothing. */
export function boundService({ spec, settings, nodes, pods, maxTargets }: SizeFacts): readonly Notice[] {
  const ports = spec.ports.length;
  const ranges = Math.max(spec.sourceRanges.length, settings.sourceRanges?.length ?? 0);
  const endpoints = pods?.slices.reduce((sum, slice) => sum + slice.endpoints.length, 0);
  const targets = Math.min(nodes.length, maxTargets ?? assumeTargets(ports));
  const fewerPorts = 'use fewer ports, or divide them between several Services';
  return refuseProducts('ServiceRefused', [
    endpoints === undefined
      ? { lengths: { ports, Nodes: targets }, most, cure: fewerPorts }
      : {
          lengths: { ports, 'endpoints of Pods': endpoints },
          most,
          cure: `${fewerPorts}, or let it select fewer Pods`,
        },
    { lengths: { ports, 'source ranges': ranges }, cure: 'use fewer ports, or wider source ranges' },
  ]);
}
