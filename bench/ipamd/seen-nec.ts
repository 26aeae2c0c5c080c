import type { Supply } from '../../agent/journal/supply.ts';
import { observedNecOf } from '../../agent/supply/observed-nec.ts';
import type { ObservedNec } from '../../agent/supply/publication.ts';
import { supplyOfConfig } from '../../agent/supply/supply-of-config.ts';
import { nodeEniConfig } from '../../crd/node-eni-config.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { decodeOrThrow } from '../../runtime/decode.ts';

/** Turns an object into what the agent's decisions work with. @throws ConfigError when it is none */
export function readNec(object: KubeObject): { readonly nec: ObservedNec; readonly supply: Supply } {
  const config = decodeOrThrow(nodeEniConfig, object, object.metadata.name);
  return { supply: supplyOfConfig(config), nec: observedNecOf(config) };
}
