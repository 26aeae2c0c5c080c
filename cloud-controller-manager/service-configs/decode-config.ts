import { tkeServiceConfig } from '../../crd/tke-service-config.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { ConfigError, decodeOrThrow } from '../../runtime/decode.ts';
import type { FoundConfig } from './choose-config.ts';

/** Decodes a TkeServiceConfig; one that is malformed is not usable. */
export function decodeConfig(object: KubeObject): Extract<FoundConfig, { readonly kind: 'known' | 'unusable' }> {
  try {
    return { kind: 'known', config: decodeOrThrow(tkeServiceConfig, object, 'it') };
  } catch (error) {
    if (error instanceof ConfigError) return { kind: 'unusable', why: error.message };
    throw error;
  }
}
