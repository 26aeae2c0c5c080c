import { NetnsView } from '../../sim/support/netns.ts';
import { run } from '../../sim/support/run.ts';
import { deleteNetnsNames } from '../../sim/support/run-names.ts';

/** A Pod sandbox's network namespace without a runtime. The caller closes it. */
export class PodNetns extends NetnsView {
  /** Removes the namespace and every link in it. Idempotent. */
  close(): Promise<void> {
    return deleteNetnsNames([this.name]);
  }
}

/**
 * Makes a network namespace as a runtime would hand it to a CNI plugin: `lo` is up, nothing else is in it.
 * Give it a name that starts with the VPC's prefix: then the VPC's `close` removes it too.
 */
export async function createPodNetns(name: string): Promise<PodNetns> {
  await run(['ip', '-batch', '-'], { input: `netns add ${name}\n` });
  const pod = new PodNetns(name);
  await pod.ip('link', 'set', 'lo', 'up');
  return pod;
}
