import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { Child } from '../../sim/support/child.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import { executablePath } from '../../test/support/executables.ts';

/** Starts the packaged cloud controller manager against a cloud, whose key is in `key.json` of `dir`, and an API server. */
export function startCcm(
  dir: string,
  endpoint: string,
  url: string,
  more: Readonly<Record<string, string>> = {},
): Child {
  const kubeconfig = join(dir, 'kubeconfig');
  writeFileSync(kubeconfig, renderKubeconfig({ url }));
  const flags = {
    region: 'ap-guangzhou',
    endpoint,
    protocol: 'http',
    credentials: 'file',
    'credentials-file': join(dir, 'key.json'),
    kubeconfig,
    // The default takes minutes for the first pass, and the same memory.
    'kube-api-qps': '500',
    'kube-api-burst': '1000',
    'metrics-address': '',
    ...more,
  };
  const argv = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  return new Child([executablePath('tke-cloud-controller-manager'), ...argv], { env: childEnv() });
}
