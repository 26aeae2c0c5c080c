import type { Clock } from '../../runtime/clock.ts';
import { IDS_PER_CALL } from '../batches.ts';
import type { CallContext, Instance, InstancePort } from '../cloud.ts';
import { isCloudError } from '../cloud-error.ts';
import { type EniLimits, eniLimitsByCores } from '../eni-limits.ts';
import type { Caller } from './caller.ts';
import { decodeEniLimit } from './decode/eni.ts';
import { decodeInstances, decodeZones } from './decode/instance.ts';
import { IdBatcher } from './id-batcher.ts';
import { SharedSweep } from './shared-sweep.ts';

/**
 * How long limits are cached. Those of a type do not change while it is sold; an hour bounds the effect of a wrong
 * answer.
 */
const LIMITS_TTL_MS = 3_600_000;
/** How long limits from the built-in table are cached: the API is called again soon. */
const FALLBACK_TTL_MS = 60_000;

/** Most values of a filter of DescribeInstances. */
const IPS_PER_CALL = 5;

type Known = { readonly limits: EniLimits; readonly untilMs: number };

/** Creates the instance part of the port. */
export function createInstancePort(clock: Clock, call: Caller, batcher: IdBatcher<Instance>): InstancePort {
  const limitsByType = new Map<string, Known>();
  const limitQueries = new SharedSweep<EniLimits>(clock);
  const byVpc = new Map<string, IdBatcher<Instance>>();
  const byIpOf = (vpcId: string): IdBatcher<Instance> => {
    const describe = async (ips: readonly string[], context: CallContext): Promise<readonly Instance[]> => {
      const Filters = [
        { Name: 'vpc-id', Values: [vpcId] },
        { Name: 'private-ip-address', Values: [...ips] },
      ];
      const found = decodeInstances(await call('DescribeInstances', { Filters, Limit: IDS_PER_CALL }, context));
      return found.filter((instance) => instance.vpcId === vpcId);
    };
    const known =
      byVpc.get(vpcId) ?? new IdBatcher<Instance>(clock, ({ privateIps }) => privateIps, describe, IPS_PER_CALL);
    byVpc.set(vpcId, known);
    return known;
  };

  const queryLimits = async (instance: Instance, context: CallContext): Promise<EniLimits> => {
    try {
      const answer = await call('DescribeNetworkInterfaceLimit', { InstanceId: instance.instanceId }, context);
      const { enis, extensionEnis, ipsPerEni } = decodeEniLimit(answer);
      return { secondaryEnis: enis - 1, extensionEnis, secondaryIpsPerEni: ipsPerEni - 1, source: 'api' };
    } catch (error) {
      if (!isCloudError(error)) throw error;
      return eniLimitsByCores(instance.cores);
    }
  };
  return {
    describe: (instanceIds, context) => batcher.get(instanceIds, context),
    describeAlone: (instanceIds, context) => batcher.getAlone(instanceIds, context),
    findByPrivateIps: (vpcId, ips, context) => byIpOf(vpcId).get(ips, context),
    zones: async (context) => decodeZones(await call('DescribeZones', {}, context)),
    eniLimits: async (instance, context) => {
      // All instances of one type have the same limits. An instance without a type is cached by its id.
      const key = instance.instanceType === '' ? instance.instanceId : `${instance.instanceType}/${instance.cores}`;
      const fresh = (): EniLimits | undefined => {
        const found = limitsByType.get(key);
        return found !== undefined && clock.monotonicMs() < found.untilMs ? found.limits : undefined;
      };
      return (
        fresh() ??
        (await limitQueries.join(key, context, async (shared) => {
          // A caller that waited for another one's request gets its result.
          const meanwhile = fresh();
          if (meanwhile !== undefined) return meanwhile;
          const limits = await queryLimits(instance, shared);
          const ttlMs = limits.source === 'api' ? LIMITS_TTL_MS : FALLBACK_TTL_MS;
          limitsByType.set(key, { limits, untilMs: clock.monotonicMs() + ttlMs });
          return limits;
        }))
      );
    },
  };
}
