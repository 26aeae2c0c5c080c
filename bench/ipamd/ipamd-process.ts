import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Kubeconfig, renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { Child } from '../../sim/support/child.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import { executablePath } from '../../test/support/executables.ts';
import type { CloudProcess } from './cloud-process.ts';

/** What an ipamd of a benchmark runs against. */
type IpamdSpec = {
  /** Folder with the key of the cloud; gets the kubeconfig. */
  readonly dir: string;
  readonly cloud: CloudProcess;
  readonly kube: Kubeconfig;
  /** Where it serves its metrics; default: it does not. */
  readonly metricsAddress?: string;
  /** Further flags. */
  readonly flags?: readonly string[];
};

/** Starts the packaged ipamd with the settings of a default installation. The caller stops it. */
export function startIpamdProcess({ dir, cloud, kube, metricsAddress = '', flags: more = [] }: IpamdSpec): Child {
  const kubeconfig = join(dir, 'kubeconfig');
  writeFileSync(kubeconfig, renderKubeconfig(kube));
  const flags = {
    clusterid: 'cls-bench000',
    region: 'ap-guangzhou',
    endpoint: cloud.endpoint,
    protocol: 'http',
    credentials: 'file',
    'credentials-file': join(dir, 'key.json'),
    kubeconfig,
    'metrics-address': metricsAddress,
  };
  const argv = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  return new Child([executablePath('tke-eni-ipamd'), ...argv, ...more], { env: childEnv() });
}
