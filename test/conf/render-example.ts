import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { JsonObject } from '../kube-api/object.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { KUBERNETES_FOLDER, objectsOf, readKustomization } from './read-manifests.ts';

/** Renders a kustomization as people do. @throws Error with what kubectl said */
export function render(folder: string, kubectl = 'kubectl'): readonly JsonObject[] {
  return objectsOf(execFileSync(kubectl, ['kustomize', folder], { encoding: 'utf8' }));
}

/** Renders the example with components of conf/kubernetes/components, by an overlay elsewhere. @throws Error with what kubectl said */
export function renderExample(components: readonly string[], kubectl = 'kubectl'): readonly JsonObject[] {
  const folder = createTempDir('overlay');
  const to = (path: string) => relative(folder.path, join(KUBERNETES_FOLDER, path));
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: [to('overlays/example')],
    // In a copy of the example components stand beside its images, and bear their names.
    images: readKustomization(join(KUBERNETES_FOLDER, 'overlays/example'))['images'],
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
