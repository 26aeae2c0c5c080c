import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Child } from '../../sim/support/child.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import { waitUntil } from '../../test/support/wait-until.ts';

/** Zone of all instances and subnets. */
export const ZONE = 'ap-guangzhou-3';

/** A simulated cloud in a process of its own, and where it listens. */
export type CloudProcess = { readonly child: Child; readonly endpoint: string };

/**
 * Starts a simulated cloud with that many instances of 8 cores; its key is in `<dir>/key.json`. The caller stops its child.
 * @throws Error when it does not listen in time
 */
export async function startCloud(dir: string, instanceCount: number): Promise<CloudProcess> {
  const subnets = [0, 1].map((index) => ({
    subnetId: `subnet-bench00${index}`,
    zone: ZONE,
    cidr: `10.${index}.0.0/16`,
  }));
  const instances = Array.from({ length: instanceCount }, (_, index) => ({
    instanceId: instanceOf(index),
    instanceType: 'S5.2XLARGE16',
    cores: 8,
    subnetId: 'subnet-bench001',
  }));
  const spec = join(dir, 'cloud.json');
  writeFileSync(spec, JSON.stringify({ vpcId: 'vpc-0000bench', subnets, instances, vpcEnis: 100_000 }));
  const child = new Child([process.execPath, 'sim/vpc/api/main.ts', '--spec', spec], { env: childEnv() });
  const line = await waitUntil(async () => (child.stdout.includes('\n') ? child.stdout : undefined), {
    what: 'the simulated cloud',
    timeoutMs: 20_000,
    everyMs: 50,
    explain: () => child.stderr,
  });
  const { endpoint, secretId, secretKey } = JSON.parse(line.split('\n')[0] ?? '{}');
  writeFileSync(join(dir, 'key.json'), JSON.stringify({ secretId, secretKey }));
  return { child, endpoint };
}

/** Returns the id of an instance. */
export function instanceOf(index: number): string {
  return `ins-${index.toString(36).padStart(8, '0')}`;
}
