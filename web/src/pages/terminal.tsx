export function Terminal() { return null; }
