import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Where a release's server archive is unpacked unless KUBE_ASSETS says otherwise. */
const DEFAULT_KUBE_ASSETS = '/usr/local/kubernetes/server/bin';

/** Executables of Kubernetes that a cluster is made of. */
const KUBE_EXECUTABLES = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'kubectl',
] as const;

/** A folder with the executables of Kubernetes, and those that are not in it. */
type KubeAssets = { readonly dir: string; readonly missing: readonly string[] };

/** Looks for the executables of Kubernetes in `dir`, or where KUBE_ASSETS says, or in the usual place. */
export function findKubeAssets(dir = process.env['KUBE_ASSETS'] || DEFAULT_KUBE_ASSETS): KubeAssets {
  return { dir, missing: KUBE_EXECUTABLES.filter((name) => !existsSync(join(dir, name))) };
}

/** Says which files are missing and where to get them. */
export function describeMissing({ dir, missing }: KubeAssets): string {
  return (
    `${dir}: lacks ${missing.join(', ')}. Unpack a release's kubernetes-server-linux-<arch>.tar.gz (1.32 to 1.36; ` +
    'https://kubernetes.io/releases/download/) and name its folder kubernetes/server/bin with KUBE_ASSETS=<folder>'
  );
}
