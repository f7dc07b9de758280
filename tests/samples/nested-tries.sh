printf 'try 5 times\n    try 100 times\n        wget -q http://localhost/a\n    end\nend\n' > nested.ftsh
program wget ''
echo '$ ftsh -n nested.ftsh'
ftsh -n nested.ftsh
