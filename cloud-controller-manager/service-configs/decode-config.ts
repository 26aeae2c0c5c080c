import { tkeServiceConfig } from '../../crd/tke-service-config.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { CacheBounds } from '../../kube/object-cache.ts';
import { ConfigError, decodeOrThrow } from '../../runtime/decode.ts';
import type { FoundConfig } from './choose-config.ts';

type DecodedConfig = Extract<FoundConfig, { readonly kind: 'known' | 'unusable' }>;

/** What is kept of TkeServiceConfigs; one that is too large is not usable. */
export const CONFIG_BOUNDS: CacheBounds<DecodedConfig> = {
  objectBytes: 2 * 1_048_576,
  namespaceBytes: 16 * 1_048_576,
  instead: (_, __, why) => ({ kind: 'unusable', why: `it takes ${why}; make it smaller, or several` }),
};

/** Decodes a TkeServiceConfig; one that is malformed is not usable. */
export function decodeConfig(object: KubeObject): DecodedConfig {
  try {
    return { kind: 'known', config: decodeOrThrow(tkeServiceConfig, object, 'it') };
  } catch (error) {
    if (error instanceof ConfigError) return { kind: 'unusable', why: error.message };
    throw error;
  }
}
