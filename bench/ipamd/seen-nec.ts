import type { Supply } from '../../agent/journal/supply.ts';
import { observedNecOf } from '../../agent/supply/observed-nec.ts';
import type { ObservedNec } from '../../agent/supply/publication.ts';
import { supplyOfConfig } from '../../agent/supply/supply-of-config.ts';
import { nodeEniConfig } from '../../crd/node-eni-config.ts';
import { NODE_ENI_CONFIG_KIND } from '../../crd/node-eni-config-fields.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { resourceTypeOf } from '../../kube/resource-types.ts';
import { decodeOrThrow } from '../../runtime/decode.ts';

/** The resource of NodeENIConfigs. */
export const NODE_ENI_CONFIGS = resourceTypeOf(NODE_ENI_CONFIG_KIND);

/** Turns an object into what the agent's decisions work with. @throws ConfigError when it is none */
export function readNec(object: KubeObject): { readonly nec: ObservedNec; readonly supply: Supply } {
  const config = decodeOrThrow(nodeEniConfig, object, object.metadata.name);
  return { supply: supplyOfConfig(config), nec: observedNecOf(config) };
}
