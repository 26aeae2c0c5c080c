import type { IngressRule } from '../../cloud/cloud.ts';

/** Renders the rules of a security group for people and for comparison, whatever their order: each admits, or one drops. */
export function renderRules(rules: readonly IngressRule[]): string {
  const texts = rules.flatMap(({ isAccepted, cidr = 'a group', protocol = 'a template', ports }) => {
    const places = ports?.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)) ?? ['ALL'];
    return places.map((place) => `${isAccepted ? 'ACCEPT' : 'DROP'} ${protocol}:${place} from ${cidr}`);
  });
  return texts.length === 0 ? 'none' : texts.toSorted().join(', ');
}
