import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import type { KubeConfigClass } from './access.ts';

/**
 * Loads the full KubeConfig class of client-node: for {@link openKubeClient} when users come with a proxy, OIDC, Azure
 * or Google. Import this file on demand: unused in an executable's bundle it costs 8 MiB, loaded 20 more. The import of the
 * package is a statement: by `import()` a split executable would get no named exports.
 */
export async function loadFullKubeConfig(): Promise<KubeConfigClass> {
  return KubeConfig;
}
