import type { Fabric } from '../../sim/vpc/api/fabric.ts';
import type { WholeAgent } from './whole-agent.ts';

type Plugged = { readonly mac: string; readonly whole: WholeAgent | undefined };

/** Opens the packets' side of a cloud: what it attaches is plugged into the machine of that instance. The judge knows the rest. */
export function openFabric(
  machines: readonly { readonly instanceId: string; readonly whole: WholeAgent | undefined }[],
): Fabric {
  const plugged = new Map<string, Plugged>();
  const nothing = async (): Promise<void> => {};
  return {
    attach: async ({ eniId, instanceId, mac }) => {
      const whole = machines.find((one) => one.instanceId === instanceId)?.whole;
      plugged.set(eniId, { mac, whole });
      whole?.plugIn(mac);
    },
    detach: async (eniId) => {
      const { mac = '', whole } = plugged.get(eniId) ?? {};
      plugged.delete(eniId);
      whole?.unplug(mac);
    },
    ...{ assign: nothing, unassign: nothing, bindEip: nothing, unbindEip: nothing, setGlobalRoutes: nothing },
    ...{ setAdmission: nothing, setListener: nothing, removeListener: nothing, setProxy: nothing },
  };
}
