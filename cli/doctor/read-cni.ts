import type { CniFacts } from './doctor-facts.ts';
import type { HostTree } from './host-tree.ts';

/** What runtimes consider. @see containernetworking/cni libcni ConfFiles */
const CONF = /\.(conf|conflist|json)$/;

/** Reads what a container runtime reads of CNI. @throws Error when it may not be read */
export function readCni(tree: HostTree, confDir: string, binDir: string): CniFacts {
  const names = tree.names(confDir).filter((name) => CONF.test(name));
  return {
    confDir,
    binDir,
    confs: names.map((name) => ({ path: `${confDir}/${name}`, text: tree.text(`${confDir}/${name}`) ?? '' })),
    executables: tree.names(binDir),
  };
}
