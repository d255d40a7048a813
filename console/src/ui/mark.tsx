export function Mark() {
  return (
    <svg viewBox="0 0 22 22" aria-hidden="true">
      <rect x="1" y="1" width="12" height="20" rx="2.5" fill="var(--accent)" />
      <rect x="15" y="1" width="6" height="11" rx="2" fill="var(--accent)" />
      <rect x="15.7" y="14.7" width="4.6" height="5.6" rx="1.4" fill="none" stroke="var(--line2)" stroke-width="1.4" />
    </svg>
  );
}
