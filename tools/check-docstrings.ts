/**
 * Checks that every exported symbol of the source folders opens with a docstring.
 * Prints each that does not and exits 1; prints one line and exits 0 when all do.
 */
import { globSync, readFileSync } from 'node:fs';

const EXPORT = /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|class|const|type) (\w+)/;

/** Lists the exported symbols of a file that have no docstring straight above them, as `name:line`. */
export function findUndocumented(text: string): readonly string[] {
  const lines = text.split('\n');
  return lines.flatMap((line, index) => {
    const name = EXPORT.exec(line)?.[1];
    if (name === undefined || lines[index - 1]?.trimEnd().endsWith('*/')) return [];
    // The later signatures of an overloaded function share the first one's docstring.
    const isOverload = lines.slice(0, index).some((before) => EXPORT.exec(before)?.[1] === name);
    return isOverload ? [] : [`${name}:${index + 1}`];
  });
}

if (import.meta.main) {
  const roots = [
    'runtime',
    'netlink',
    'sysctl',
    'dataplane',
    'inspection',
    'crd',
    'cloud',
    'kube',
    'ipamd',
    'cli',
    'agent',
    'cni-plugins',
    'scheduler',
    'webhook',
    'cloud-controller-manager',
    'observability',
    'pod-routes',
    'tools',
    'sim',
  ];
  const paths = roots
    .flatMap((root) => globSync(`${root}/**/*.ts`))
    // Constants of a kernel header bear its names; the file says which header, and that says the rest.
    .filter((path) => !path.endsWith('.test.ts') && !path.includes('/uapi/'));
  const missing = paths.flatMap((path) =>
    findUndocumented(readFileSync(path, 'utf8')).map((found) => `${path}: ${found} has no docstring`),
  );
  for (const line of missing) console.error(line);
  console.error(`docstrings: ${paths.length} files, ${missing.length} missing`);
  process.exitCode = missing.length === 0 ? 0 : 1;
}
