/** Ends with code 2 and says why when there are no executables of Kubernetes: before anything is installed or built. */
import { describeMissing, findKubeAssets } from './kube-assets.ts';

const assets = findKubeAssets();
if (assets.missing.length > 0) {
  process.stderr.write(`${describeMissing(assets)}\n`);
  process.exitCode = 2;
}
