import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { JsonObject } from '../kube-api/object.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { KUBERNETES_FOLDER, objectsOf, readKustomization, strings } from './read-manifests.ts';

/** Renders a kustomization as people do. @throws Error with what kubectl said */
export function render(folder: string, kubectl = 'kubectl'): readonly JsonObject[] {
  return objectsOf(execFileSync(kubectl, ['kustomize', folder], { encoding: 'utf8' }));
}

/** The overlays that people start from, by the oldest Kubernetes that takes them. */
export type KubernetesVersion = '1.27' | '1.30';

/**
 * Renders the example as a copy of it elsewhere would be: for the given Kubernetes, with components of
 * conf/kubernetes/components besides. @throws Error with what kubectl said
 */
export function renderExample(
  components: readonly string[],
  { version = '1.30', kubectl = 'kubectl' }: { readonly version?: KubernetesVersion; readonly kubectl?: string } = {},
): readonly JsonObject[] {
  const folder = createTempDir('overlay');
  const to = (path: string) => relative(folder.path, join(KUBERNETES_FOLDER, path));
  const example = readKustomization(join(KUBERNETES_FOLDER, 'overlays/example'));
  const kustomization = {
    ...example,
    resources: strings(example['resources']).map((path) =>
      to(join('overlays/example', path.replace('kubernetes-1.30', `kubernetes-${version}`))),
    ),
    components: components.map((name) => to(`components/${name}`)),
  };
  try {
    // JSON is YAML.
    writeFileSync(folder.join('kustomization.yaml'), JSON.stringify(kustomization));
    return render(folder.path, kubectl);
  } finally {
    folder.close();
  }
}
