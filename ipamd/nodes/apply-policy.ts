import type { Instance } from '../../cloud/cloud.ts';
import type { EniLimits } from '../../cloud/eni-limits.ts';
import type { NodeEniConfig } from '../../crd/node-eni-config.ts';
import { readNodeEniConfig } from '../../crd/read-node-eni-config.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS } from '../../kube/resource-types.ts';
import { type AppliedPolicy, isPolicyInForce, type Policy, readApplied } from './decide-policy.ts';
import { isIdentityInForce, withPolicy } from './render-config.ts';

/** A NodeENIConfig as the cache contains it. */
type CachedConfig = { readonly name: string; readonly object: KubeObject; readonly config: NodeEniConfig };

/**
 * Brings the policy fields of a NodeENIConfig up to date, and the instance in its status. Idempotent; writes nothing
 * when they are. `warm` is present when the warm target by annotation differs from the one that was last reported: the
 * new one, or '' for none.
 * @throws whatever the client throws
 */
export async function applyPolicy(
  kube: KubeClient,
  cached: CachedConfig,
  policyOf: (config: NodeEniConfig, applied: AppliedPolicy) => Policy,
  { instance, limits }: { readonly instance: Instance; readonly limits: EniLimits },
  signal: AbortSignal,
): Promise<{ readonly warm?: string }> {
  let warm: string | undefined;
  const change = (current: KubeObject): KubeObject | undefined => {
    warm = undefined;
    // An object that is being deleted needs no policy.
    if (current.metadata.deletionTimestamp !== undefined) return undefined;
    const config = current === cached.object ? cached.config : readNodeEniConfig(current)?.config;
    // It is of another instance: its ENIs are drained, and then it is created again.
    const instanceId = config?.status?.instanceID;
    if (config === undefined || (instanceId !== undefined && instanceId !== instance.instanceId)) return undefined;
    const applied = readApplied(current.metadata.annotations);
    const policy = policyOf(config, applied);
    if (isIdentityInForce(config.status, instance, limits) && isPolicyInForce(config.spec ?? {}, applied, policy))
      return undefined;
    if (applied.routeWarm !== policy.applied.routeWarm) warm = policy.applied.routeWarm ?? '';
    return withPolicy(current, policy, instance, limits);
  };
  if (change(cached.object) === undefined) return {};
  await updateGuarded(kube, NODE_ENI_CONFIGS, { name: cached.name }, change, { current: cached.object, signal });
  return warm === undefined ? {} : { warm };
}
